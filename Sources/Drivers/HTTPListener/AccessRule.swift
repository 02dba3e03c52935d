// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Decides which requests are answered, by their path and their `Host` and `Authorization` headers.
struct AccessRule: Sendable {
    private let token: Secret?
    private let openPaths: Set<String>
    /// The hosts that a request may name; nil allows any.
    private let hosts: Set<String>?

    init(_ settings: HTTPListenerSettings) {
        token = settings.token
        openPaths = settings.openPaths
        // A web page can reach a listener on loopback if its own host name is made to resolve to it
        // (DNS rebinding). The browser then sends that name as `Host`.
        hosts =
            settings.token == nil && settings.isOnLoopback
            ? ["localhost", "127.0.0.1", "::1", "[::1]", settings.host] : nil
    }

    enum Refusal: Equatable {
        case unauthorized
        /// The `Host` header does not name this host.
        case wrongHost
    }

    /// - Parameters:
    ///   - path: the path, percent-encoded as the client sent it.
    ///   - authorization: the value of the `Authorization` header.
    ///   - authority: the value of the `Host` header, with its port.
    func refusal(path: String, authorization: String?, authority: String?) -> Refusal? {
        if let hosts, let authority, !hosts.contains(Self.host(of: authority)) { return .wrongHost }
        guard let token, !openPaths.contains(path) else { return nil }
        let scheme = "bearer "
        guard let authorization, authorization.lowercased().hasPrefix(scheme) else {
            return .unauthorized
        }
        let shown = authorization.dropFirst(scheme.count)
        return Self.isEqual(Array(shown.utf8), Array(token.text.utf8)) ? nil : .unauthorized
    }

    private static func host(of authority: String) -> String {
        if authority.hasPrefix("[") {
            return String(authority.prefix { $0 != "]" }) + "]"
        }
        return String(authority.prefix { $0 != ":" }).lowercased()
    }

    /// Compares in constant time for texts of equal length, so that timing does not tell how much of
    /// a guess is right.
    private static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
