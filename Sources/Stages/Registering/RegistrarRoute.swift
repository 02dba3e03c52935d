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
        case invalid(part: String, remedy: String)
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
        guard parts.count >= 6, parts[0].isEmpty, parts[1] == "v1", parts[2] == "apps",
            parts[4] == "environments"
        else { throw .notFound }
        let app = try Self.name(parts[3], "app")
        guard let environment = PushEnvironment(name: parts[5]) else {
            throw .invalid(part: "environment", remedy: "use production or development")
        }
        switch Array(parts[6...]) {
        case ["batch"]: self = .batch(environment, app: app)
        case let rest where rest.count >= 2 && rest.count <= 4 && rest[0] == "installations":
            let key = InstallationKey(
                environment: environment, app: app,
                installation: try Self.name(rest[1], "installation"))
            if rest.count == 2 {
                self = .installation(key)
                return
            }
            if rest[2] == "attest" {
                guard rest.count == 3 || rest[3] == "challenge" else { throw .notFound }
                self = rest.count == 3 ? .attestation(key) : .challenge(key)
                return
            }
            guard let tokenClass = RegistrationClass(rawValue: rest[2]) else { throw .notFound }
            if rest.count == 4 {
                guard RegistrationClass.isHandlerName(rest[3]) else {
                    throw .invalid(
                        part: "handler", remedy: RegistrationClass.handlerNameRemedy)
                }
                self = .handler(key, tokenClass, rest[3])
            } else {
                self =
                    tokenClass == .controls
                    ? .all(key, tokenClass)
                    : .handler(key, tokenClass, RegistrationClass.defaultHandler)
            }
        default: throw .notFound
        }
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

    private static func name(_ text: String, _ part: String) throws(Failure) -> String {
        guard InstallationKey.isName(text) else {
            throw .invalid(part: part, remedy: SnapshotReader.nameRemedy)
        }
        return text
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
