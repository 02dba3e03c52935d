// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOHTTP1
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
    func refusal(of head: HTTPRequestHead, path: String) -> Refusal? {
        let headers = HTTPHeaders(head.headers)
        if let hosts {
            if let host = headers["Host"], !hosts.contains(Self.host(of: host)) {
                return .wrongHost
            }
            let opensPage = head.method == .GET && path == "/" && Self.opensTab(headers)
            if Self.isOfOtherSite(headers), !opensPage { return .otherSite }
        }
        guard let token, !openPaths.contains(path) else { return nil }
        let scheme = "bearer "
        guard let authorization = headers.all("Authorization"),
            authorization.lowercased().hasPrefix(scheme)
        else { return .unauthorized }
        let shown = authorization.dropFirst(scheme.count)
        return ConstantTime.isEqual(Array(shown.utf8), Array(token.text.utf8)) ? nil : .unauthorized
    }

    /// Whether a browser says that a page of another site asks. Another port of this host is another
    /// origin, though the same site. Programs send neither header.
    private static func isOfOtherSite(_ headers: HTTPHeaders) -> Bool {
        if let site = headers.all("Sec-Fetch-Site") {
            // `none` is a person's own doing: an address that was typed, or a bookmark.
            guard site == "same-origin" || site == "none" else { return true }
        }
        guard let origin = headers.all("Origin") else { return false }
        let authority = origin.split(separator: "://", maxSplits: 1).last.map(String.init)
        return authority?.lowercased() != headers["Host"]?.lowercased()
    }

    /// Whether a link opens a page in a tab, as it may the start page: that is the same for everybody,
    /// may stand in no frame, and whoever links to it cannot read it.
    private static func opensTab(_ headers: HTTPHeaders) -> Bool {
        headers.all("Sec-Fetch-Mode") == "navigate" && headers.all("Sec-Fetch-Dest") == "document"
    }

    private static func host(of authority: String) -> String {
        if authority.hasPrefix("[") {
            return String(authority.prefix { $0 != "]" }) + "]"
        }
        return String(authority.prefix { $0 != ":" }).lowercased()
    }
}
