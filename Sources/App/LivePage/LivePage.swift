// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import HTTPListener

/// The page that shows a worker's status in a browser: the files of `Assets`, compiled into the
/// program.
///
/// The page asks the server that it comes from for `status` once a second, and at first for
/// `fleet`: the demo answers that with its workers and devices, and a worker with `noFleet`.
package enum LivePage {
    /// The paths of the page and its parts. They are the same for everybody and hold nothing of a
    /// worker, so they need no token.
    package static var paths: Set<String> { Set(assets.keys) }

    /// The answer to a request for a part of the page; nil if the path is of something else.
    package static func answer(_ request: HTTPRequest) -> HTTPAnswer? {
        guard let (type, text) = assets[request.path] else { return nil }
        guard request.method == .get else { return .notAllowed(but: [.get]) }
        var answer = HTTPAnswer(contentType: "\(type); charset=utf-8", body: Array(text.utf8))
        answer.headers["Content-Security-Policy"] = contentSecurityPolicy
        return answer
    }

    /// The answer to `fleet` of a server that is one worker.
    package static let noFleet = HTTPAnswer.json(#"{"v":1,"workers":[]}"#)

    /// Lets the page load its own parts and ask its own server, and nothing else. The icon is data
    /// in the page.
    package static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' data:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"

    private static let assets: [String: (type: String, text: String)] = [
        "/": ("text/html", EmbeddedText.page_html),
        "/page.css": ("text/css", EmbeddedText.page_css),
        "/page.js": ("text/javascript", EmbeddedText.page_js),
        "/chart.js": ("text/javascript", EmbeddedText.chart_js),
        "/format.js": ("text/javascript", EmbeddedText.format_js),
        "/panels.js": ("text/javascript", EmbeddedText.panels_js),
        "/tables.js": ("text/javascript", EmbeddedText.tables_js),
        "/wall.js": ("text/javascript", EmbeddedText.wall_js),
    ]
}
