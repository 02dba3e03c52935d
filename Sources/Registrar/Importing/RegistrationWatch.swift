// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats
package import RegistrarRules
internal import Simdjson

/// Reads the registrations topic while rows are imported, so that no row is written over what an
/// installation has registered itself, and decides which rows are written at all.
package struct RegistrationWatch: ~Copyable {
    /// An import that its installation has ended by registering itself.
    package struct Ended: Hashable, Sendable {
        package var key: InstallationKey
        package var tokenClass: TokenClass
    }

    package enum Decision: Hashable, Sendable {
        case new
        /// It replaces what was imported of the installation when it was last seen earlier.
        case later
        case registeredItself
        /// The same, or what was seen later, has been imported already, or was removed since.
        case known
    }

    private var known: KnownInstallations
    private var ended: [UInt64: Ended] = [:]
    private var parser = JSONParser(bytesMax: 4 << 20)
    private let digest: ([UInt8]) -> [UInt8]
    private let forgetsImports: Bool

    /// - Parameters:
    ///   - forgetsImports: whether rows are written though they have been imported before.
    ///   - digest: SHA-256.
    package init(
        seed: UInt64, forgetsImports: Bool = false, digest: @escaping ([UInt8]) -> [UInt8]
    ) {
        known = KnownInstallations(seed: seed)
        self.forgetsImports = forgetsImports
        self.digest = digest
    }

    /// How many installations and classes are remembered.
    package var count: Int { known.count }

    /// The imports that have ended, and whose tombstones have not been seen.
    package var endedCount: Int { ended.count }

    package mutating func takeEnded() -> [Ended] {
        defer { ended = [:] }
        return Array(ended.values)
    }

    // MARK: Records

    /// A record of the topic, in the order of its partition.
    ///
    /// - Parameters:
    ///   - tokenClass: the class that the record's header has.
    package mutating func take(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime,
        tokenClass: UnsafeRawBufferPointer?
    ) {
        guard let (key, handler) = InstallationKey.read(recordKey: key),
            handler != InstallationClaim.handler
        else { return }
        if let tokenClass = ImportedRegistration.tokenClass(ofHandler: handler) {
            return takeImport(key, tokenClass, value, timestamp)
        }
        let word = tokenClass.map { String(decoding: $0, as: UTF8.self) }
        let named = word.flatMap { RegistrationClass(rawValue: $0) }
        var classes: Set<TokenClass> = []
        if let named = named ?? Self.tokenClass(ofDefault: handler) {
            classes.insert(named.tokenClass)
        }
        guard let value else {
            let seen = KnownInstallations.Seen(timestamp)
            for tokenClass in classes { note(key, tokenClass, seen) }
            // Of what class it was is not said: no row is written that was seen earlier, and what was imported
            // stays, since it was hardly of the same.
            guard classes.isEmpty else { return }
            for tokenClass in Self.classes { known.note(known.name(key, tokenClass), seen) }
            return
        }
        guard let targets = (try? parser.parse(value).object)?["targets"]?.array else { return }
        var tokens: [(TokenClass, [UInt8])] = []
        for target in targets {
            guard let members = target.object, let word = members["class"]?.string,
                let tokenClass = TokenClass(name: String(decoding: word, as: UTF8.self))
            else { continue }
            classes.insert(tokenClass)
            if let digits = members["token"]?.string,
                let token = Hexadecimal.decode(String(decoding: digits, as: UTF8.self))
            {
                tokens.append((tokenClass, token))
            }
        }
        for tokenClass in classes.isEmpty ? Self.classes : Array(classes) {
            note(key, tokenClass, .registered)
        }
        for (tokenClass, token) in tokens {
            note(key.named(after: token, digest), tokenClass, .registered)
        }
    }

    /// All that can be imported.
    private static let classes = TokenClass.builtIn.filter { $0 != .channel }

    private static func tokenClass(ofDefault handler: String) -> RegistrationClass? {
        RegistrationClass.allCases.first {
            $0.keyPart(of: RegistrationClass.defaultHandler) == handler
        }
    }

    private mutating func takeImport(
        _ key: InstallationKey, _ tokenClass: TokenClass, _ value: UnsafeRawBufferPointer?,
        _ timestamp: WallTime
    ) {
        let name = known.name(key, tokenClass)
        guard let value else {
            known.note(name, KnownInstallations.Seen(timestamp))
            ended[name] = nil
            return
        }
        // The installation's own registration is in another partition, and was read before.
        guard known[name] != .registered else {
            ended[name] = Ended(key: key, tokenClass: tokenClass)
            return
        }
        guard !forgetsImports else {
            known.note(name, .forgotten)
            return
        }
        guard let record = try? parser.parse(value).object else { return }
        let time = record["registeredAt"]?.string.flatMap { WallTime(rfc3339: $0) }
        known.note(name, KnownInstallations.Seen(time ?? timestamp))
    }

    private mutating func note(
        _ key: InstallationKey, _ tokenClass: TokenClass, _ seen: KnownInstallations.Seen
    ) {
        let name = known.name(key, tokenClass)
        let before = known.note(name, seen)
        // What was imported as seen after a removal stays. To end it once more than needed is no harm.
        if let before, before != .registered, before <= seen {
            ended[name] = Ended(key: key, tokenClass: tokenClass)
        }
    }

    // MARK: Rows

    /// Where a row's registration belongs.
    package func key(of row: ImportedRow) -> InstallationKey {
        let key = InstallationKey(
            environment: row.environment, app: row.app, installation: row.installation ?? "")
        return row.installation == nil ? key.named(after: row.token, digest) : key
    }

    /// Decides whether a row is written, and remembers it as written.
    package mutating func judge(_ row: ImportedRow, _ key: InstallationKey) -> Decision {
        let name = known.name(key, row.tokenClass)
        let seen = KnownInstallations.Seen(row.lastSeen)
        if row.installation != nil {
            let ofToken = known.name(key.named(after: row.token, digest), row.tokenClass)
            if known[ofToken] == .registered { return .registeredItself }
        }
        switch known[name] {
        case nil:
            known.note(name, seen)
            return .new
        case .registered?: return .registeredItself
        case let before? where before < seen:
            known.note(name, seen)
            return .later
        case _?: return .known
        }
    }
}

extension InstallationKey {
    fileprivate func named(
        after token: [UInt8], _ digest: ([UInt8]) -> [UInt8]
    ) -> InstallationKey {
        let digest = digest(token)
        assert(digest.count == 32, "the digest of a token is a SHA-256 of 32 bytes")
        return InstallationKey(
            environment: environment, app: app,
            installation: ImportedRegistration.installation(ofTokenDigest: digest))
    }
}
