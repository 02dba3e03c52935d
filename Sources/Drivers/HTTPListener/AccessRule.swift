// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import OpenSSL
internal import PushModel

/// Decides which requests are answered, by their path and their headers.
struct AccessRule: Sendable {
    private let token: Secret?
    private let openPaths: Set<String>
    /// The hosts that a request may name; nil allows any.
    private let hosts: Set<String>?

    init(_ settings: HTTPListenerSettings) {
        token = settings.token
        openPaths = settings.openPaths
        // A listener on loopback without a token trusts whoever can connect, which a web page can
        // by the browser of somebody on this host: with a request to the address, or by a name that
        // is made to resolve to it (DNS rebinding). The browser sends that name as `Host`.
        hosts =
            settings.token == nil && settings.isOnLoopback && !settings.checksCallers
            ? ["localhost", "127.0.0.1", "::1", "[::1]", settings.host] : nil
    }

    enum Refusal: Equatable {
        case unauthorized
        /// The `Host` header does not name this host.
        case wrongHost
        /// A page of another site asks by a browser.
        case otherSite
    }

    /// - Parameter path: the path, percent-encoded as the client sent it.
    func refusal(of request: HTTPRequest, path: String) -> Refusal? {
        if let hosts {
            if let authority = request.authority, !hosts.contains(Self.host(of: authority)) {
                return .wrongHost
            }
            if Self.isOfOtherSite(request), !Self.opensPage(request, path) { return .otherSite }
        }
        guard let token, !openPaths.contains(path) else { return nil }
        let scheme = "bearer "
        guard let authorization = request.headerFields[.authorization],
            authorization.lowercased().hasPrefix(scheme)
        else { return .unauthorized }
        let shown = authorization.dropFirst(scheme.count)
        return ConstantTime.isEqual(Array(shown.utf8), Array(token.text.utf8)) ? nil : .unauthorized
    }

    /// Whether a browser says that a page of another site asks. Another port of this host is another
    /// origin, though the same site. Programs send neither header.
    private static func isOfOtherSite(_ request: HTTPRequest) -> Bool {
        if let site = request.headerFields[HTTPField.Name("Sec-Fetch-Site")!] {
            // `none` is a person's own doing: an address that was typed, or a bookmark.
            guard site == "same-origin" || site == "none" else { return true }
        }
        guard let origin = request.headerFields[.origin] else { return false }
        let authority = origin.split(separator: "://", maxSplits: 1).last.map(String.init)
        return authority?.lowercased() != request.authority?.lowercased()
    }

    /// Whether a link opens the start page in a tab. It is the same for everybody, may stand in no
    /// frame, and whoever links to it cannot read it.
    private static func opensPage(_ request: HTTPRequest, _ path: String) -> Bool {
        let fields = request.headerFields
        return request.method == .get && path == "/"
            && fields[HTTPField.Name("Sec-Fetch-Mode")!] == "navigate"
            && fields[HTTPField.Name("Sec-Fetch-Dest")!] == "document"
    }

    private static func host(of authority: String) -> String {
        if authority.hasPrefix("[") {
            return String(authority.prefix { $0 != "]" }) + "]"
        }
        return String(authority.prefix { $0 != ":" }).lowercased()
    }
}
