// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// What a path names; docs/openapi.json describes each.
package enum RegistrarRoute: Hashable, Sendable {
    case openAPI
    case batch(PushEnvironment, app: String)
    case challenge(InstallationKey)
    case attestation(InstallationKey)
    case installation(InstallationKey)
    /// Without a handler, of all controls; of the default handler of another class.
    case all(InstallationKey, RegistrationClass)
    case handler(InstallationKey, RegistrationClass, String)

    package enum Failure: Error, Hashable, Sendable {
        case notFound
        /// The part of the path that has this meaning cannot be one.
        /// - Parameter methods: those of such a path with a part that is allowed.
        case invalid(part: String, remedy: String, methods: [String])
    }

    /// - Parameter path: percent-encoded. No name that is allowed needs an escape, but a client may
    ///   encode what it need not.
    package init(path: String) throws(Failure) {
        guard let path = Self.decoded(path) else { throw .notFound }
        if path == "/v1/openapi.json" {
            self = .openAPI
            return
        }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 7, parts[0].isEmpty, parts[1] == "v1", parts[2] == "apps",
            parts[4] == "environments"
        else { throw .notFound }
        var wrong: (part: String, remedy: String)?
        func expect(_ isAllowed: Bool, _ part: String, _ remedy: String) {
            if !isAllowed, wrong == nil { wrong = (part, remedy) }
        }
        let named = PushEnvironment(name: parts[5])
        // The route is not made if its environment is none, but its methods are told.
        let environment = named ?? .production
        let names = SnapshotReader.nameRemedy
        expect(InstallationKey.isName(parts[3]), "app", names)
        expect(named != nil, "environment", "use production or development")
        switch (parts[6], parts.count) {
        case ("batch", 7): self = .batch(environment, app: parts[3])
        case ("installations", 8...10):
            expect(InstallationKey.isName(parts[7]), "installation", names)
            let key = InstallationKey(
                environment: environment, app: parts[3], installation: parts[7])
            let route = try Self.route(below: key, parts[8...].map { $0 })
            if case .handler(_, _, let handler) = route {
                expect(
                    RegistrationClass.isHandlerName(handler), "handler",
                    RegistrationClass.handlerNameRemedy)
            }
            self = route
        default: throw .notFound
        }
        if let wrong {
            throw .invalid(part: wrong.part, remedy: wrong.remedy, methods: methods)
        }
    }

    /// - Parameter rest: the parts after the installation.
    private static func route(
        below key: InstallationKey, _ rest: [String]
    ) throws(Failure) -> RegistrarRoute {
        guard let first = rest.first else { return .installation(key) }
        if first == "attest" {
            guard rest.count == 1 || rest[1] == "challenge" else { throw .notFound }
            return rest.count == 1 ? .attestation(key) : .challenge(key)
        }
        guard let tokenClass = RegistrationClass(rawValue: first) else { throw .notFound }
        if rest.count == 2 { return .handler(key, tokenClass, rest[1]) }
        return tokenClass == .controls
            ? .all(key, tokenClass)
            : .handler(key, tokenClass, RegistrationClass.defaultHandler)
    }

    /// The methods that the path has.
    package var methods: [String] {
        switch self {
        case .openAPI: ["GET"]
        case .batch, .challenge, .attestation: ["POST"]
        case .installation: ["GET", "DELETE"]
        case .all, .handler: ["GET", "PUT", "DELETE"]
        }
    }

    private static func decoded(_ path: String) -> String? {
        guard path.utf8.contains(UInt8(ascii: "%")) else { return path }
        var bytes: [UInt8] = []
        var rest = path.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard let decoded = Hexadecimal.decode(String(decoding: digits, as: UTF8.self)),
                decoded.count == 1, decoded[0] != UInt8(ascii: "/")
            else { return nil }
            bytes.append(decoded[0])
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
