// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel

/// Looks at the files and the key set that access is configured with, and says what has changed. A
/// file that has become wrong is told once, and what it said before stays in force.
struct AccessWatch: ~Copyable {
    enum Change {
        case serviceKeys(ServiceKeys)
        case roots(TrustedRoots)
        case secrets(AttestSecrets)
        case tokenKeys(JSONWebKeySet)
        case sameTokenKeys
        /// Nil if it has been told.
        case fault(AccessNotice?)
        case notice(AccessNotice)
    }

    /// What the files say at the start.
    struct First {
        var serviceKeys: ServiceKeys?
        var trust: AppAttestAccess.Trust?
    }

    private var serviceKeys: WatchedFile?
    private var roots: WatchedFile?
    private var secrets: WatchedFile?
    private var tokenKeys: TokenKeySource?
    /// The file or the URL of the key set.
    private let tokenKeysName: String
    private var tokenKeysFault: FileFault?
    private var lookedAt = WallTime(milliseconds: 0)

    private static let filePause = Duration.seconds(5)
    private static let rootBytesMax = 64 << 10

    init(
        _ settings: AccessSettings, fetch: (@Sendable () -> Result<[UInt8], FileFault>)? = nil
    ) {
        serviceKeys = settings.serviceKeysFile.map {
            WatchedFile($0, bytesMax: ServiceKeys.bytesMax, key: "registrar.auth.serviceKeysFile")
        }
        roots = settings.appAttest.map {
            WatchedFile(
                $0.rootFile, bytesMax: Self.rootBytesMax,
                key: "registrar.auth.appAttest.rootFile")
        }
        secrets = settings.appAttest.map {
            WatchedFile(
                $0.secretFile, bytesMax: AttestSecrets.bytesMax,
                key: "registrar.auth.appAttest.secretFile")
        }
        switch settings.jwt?.keys {
        case .file(let name): tokenKeysName = name
        // Its query may have a key.
        case .url(let url): tokenKeysName = String(url.prefix { $0 != "?" && $0 != "#" })
        case nil: tokenKeysName = ""
        }
        if let jwt = settings.jwt { tokenKeys = TokenKeySource(jwt, fetch: fetch) }
    }

    mutating func first() throws(AccessSettingsError) -> First {
        var first = First()
        first.serviceKeys = try serviceKeys?.first(Self.serviceKeys)
        if let roots = try roots?.first(Self.roots), let secrets = try secrets?.first(Self.secrets)
        {
            first.trust = AppAttestAccess.Trust(roots: roots, secrets: secrets)
        }
        return first
    }

    mutating func look(unknownKeySeen: Bool, now: WallTime) -> [Change] {
        var changes: [Change] = []
        // A clock that was set back holds nothing up.
        if now < lookedAt || now - lookedAt >= Self.filePause {
            lookedAt = now
            changes += serviceKeys?.look(Self.serviceKeys) { .serviceKeys($0) } ?? []
            changes += roots?.look(Self.roots) { .roots($0) } ?? []
            changes += secrets?.look(Self.secrets) { .secrets($0) } ?? []
        }
        switch tokenKeys?.look(unknownKeySeen: unknownKeySeen, now: now) {
        case nil: break
        case .same:
            changes.append(.sameTokenKeys)
            if tokenKeysFault != nil { changes.append(.notice(tokenKeysNotice("is back"))) }
            tokenKeysFault = nil
        case .new(let keys):
            changes.append(.tokenKeys(keys))
            changes.append(
                .notice(
                    tokenKeysNotice(
                        "has \(keys.keys.count) keys that verify tokens, and \(keys.passedOver) "
                            + "others")))
            tokenKeysFault = nil
        case .fault(let fault):
            let isTold = tokenKeysFault == fault
            tokenKeysFault = fault
            let notice = AccessNotice(isFault: true, text: "the key set \(tokenKeysName) \(fault)")
            changes.append(.fault(isTold ? nil : notice))
        }
        return changes
    }

    private func tokenKeysNotice(_ text: String) -> AccessNotice {
        AccessNotice(isFault: false, text: "the key set \(tokenKeysName) \(text)")
    }

    private static func serviceKeys(_ bytes: [UInt8]) throws(FileFault) -> ServiceKeys {
        try ServiceKeys(bytes)
    }

    private static func secrets(_ bytes: [UInt8]) throws(FileFault) -> AttestSecrets {
        try AttestSecrets(bytes)
    }

    private static func roots(_ bytes: [UInt8]) throws(FileFault) -> TrustedRoots {
        do throws(TLSError) {
            return try TrustedRoots(pem: String(decoding: bytes, as: UTF8.self))
        } catch { throw FileFault("has no certificate in PEM: \(error.text)") }
    }
}

/// A file, and what it said when it was last looked at.
private struct WatchedFile {
    private let file: AccessFile
    private let key: String
    private var bytes: [UInt8]?
    private var fault: FileFault?

    init(_ path: String, bytesMax: Int, key: String) {
        file = AccessFile(path, bytesMax: bytesMax)
        self.key = key
    }

    mutating func first<Value>(
        _ parse: ([UInt8]) throws(FileFault) -> Value
    ) throws(AccessSettingsError) -> Value {
        do throws(FileFault) {
            let read = try file.read()
            let value = try parse(read)
            bytes = read
            return value
        } catch { throw AccessSettingsError(key: key, text: "\(file.path) \(error)") }
    }

    mutating func look<Value>(
        _ parse: ([UInt8]) throws(FileFault) -> Value, _ change: (Value) -> AccessWatch.Change
    ) -> [AccessWatch.Change] {
        do throws(FileFault) {
            let read = try file.read()
            guard read != bytes else {
                fault = nil
                return []
            }
            let value = try parse(read)
            bytes = read
            fault = nil
            let text = "\(key): \(file.path) has changed, and is in force"
            return [change(value), .notice(AccessNotice(isFault: false, text: text))]
        } catch {
            let isTold = fault == error
            fault = error
            let text = "\(key): \(file.path) \(error); what it said before stays in force"
            return [.fault(isTold ? nil : AccessNotice(isFault: true, text: text))]
        }
    }
}
