// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The limitations of libcurl 7.88.
enum Shortcoming: String, CaseIterable, Sendable {
    case refusals = "cannot tell refused from lost"
    case settings = "sees no SETTINGS"
    case goAway = "sees no GOAWAY"
    case ping = "sends no PING"
    case cutAnswers = "may forget what came before a reset"
    case largeHeaders = "may lose an answer with 100 KB of headers"
    case brokenProtocol = "does not notice a connection that no longer works"
    case lateALPN = "learns too late that HTTP/2 is refused"
    case fullWindow = "spins while a window is full"

    /// What the limitation means for a worker.
    var consequence: String {
        switch self {
        case .refusals:
            """
            libcurl would send a refused stream again on another connection; we forbid that. The push \
            ends unknown, and the next one takes a new connection.
            """
        case .settings:
            """
            It obeys the announced limit, but does not show it: the pool's size is told by answers \
            alone, the first push goes out before SETTINGS have come, and pushes that the server \
            refuses because its limit has fallen end unknown.
            """
        case .goAway:
            """
            The reason is lost, and what GOAWAY leaves out ends unknown, like what the server may \
            have taken.
            """
        case .ping:
            """
            After a silence the next push goes alone. If the connection was dead, that push ends \
            unknown at its deadline, and the others take a new connection.
            """
        case .cutAnswers: "Such a push ends accepted or unknown."
        case .largeHeaders: "Such a push ends accepted or unknown; the connection is kept."
        case .brokenProtocol:
            "When the server breaks the rules of HTTP/2, pushes in flight end at their deadline."
        case .lateALPN:
            """
            It offers HTTP/1.1 beside HTTP/2 and is told by the first answer, so the first push of \
            each connection has been sent, and ends unknown.
            """
        case .fullWindow:
            """
            curl issue 10618. We keep the bytes in flight under half of HTTP/2's first window, so it \
            happens only with a server that answers and does not give the window back, or one \
            whose windows are smaller.
            """
        }
    }
}
