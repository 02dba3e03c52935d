// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// docs/transports.md: what the suite verifies, for people.
enum TransportsPage {
    static var text: String {
        let body = ([legend] + Behaviour.chapters.map(table) + [limits]).joined(separator: "\n\n")
        return [introduction, PageContents.list(of: body), body].joined(separator: "\n\n") + "\n"
    }

    private static let introduction = """
        # Transports

        This page is written by the conformance suite: each line is a test that runs against both
        transports. `make conformance` runs them; `WRITE_DOCS=1 make conformance` writes the page anew.

        A worker sends its pushes through one of two transports, chosen by `apns.transport`:

        - **`nghttp2`**: nghttp2 and OpenSSL in an event loop of ours. It sees all of HTTP/2 and obeys
          it at once, and costs little CPU for each push.
        - **`curl`**: libcurl 7.88 (Debian 12), one multi handle for each connection. It goes through an
          HTTP proxy. libcurl hides SETTINGS and GOAWAY, so for fewer pushes it can tell what became of
          them. It chooses the address itself: one that is replaced since it fails may be reached again,
          and behind a proxy the proxy chooses.

        `auto`, the default, is `curl` when `apns.proxy` is set and `nghttp2` otherwise. The choice is
        logged with its reason and never changes at run time. Whatever happens, each transport gives
        each push exactly one outcome, and does not itself send again what APNs may have processed.
        """

    private static let legend = """
        ## What is verified

        A cell says how the pushes of that test ended and how many connections the server saw.
        *Accepted* and *× 410* are answers. *Unknown* means that the push was sent and nobody knows what
        became of it: the planner sends it again, after a wait. A push that is *given back unsent* loses
        only time: no attempt is counted. *Idle* means that while it had to wait the delivery thread
        used under a tenth of a CPU. In every test each push had one outcome, and by the
        server's own log none was accepted twice.
        """

    private static func table(_ chapter: (title: String, behaviours: [Behaviour])) -> String {
        let head = "## \(chapter.title)\n\n| behaviour | nghttp2 | libcurl |\n|---|---|---|"
        let rows = chapter.behaviours.map { behaviour in
            let (fast, slow) = (behaviour.nghttp2.text, behaviour.libcurl.text)
            return "| \(behaviour.name) | \(fast) | \(slow == fast ? "the same" : slow) |"
        }
        return ([head] + rows).joined(separator: "\n")
    }

    private static var limits: String {
        let items = Shortcoming.allCases.map { shortcoming in
            let rows = Behaviour.all.filter { $0.libcurl.cannot == shortcoming }.map(\.name)
            return "- **\(shortcoming.rawValue)**: \(shortcoming.consequence)\n  Shown by: "
                + rows.joined(separator: "; ") + "."
        }
        return "## Where libcurl cannot\n\n" + items.joined(separator: "\n")
    }
}
