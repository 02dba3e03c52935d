// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOHTTP1

/// Looks at a request's head before anybody looks at what it asks for.
enum RequestHeadRules {
    /// Why a request is refused.
    struct Refusal: Equatable {
        var status: Int
        var reason: String
    }

    /// Whether the connection ends with the answer.
    static func isLast(_ head: HTTPRequestHead) -> Bool {
        // What follows a request for another protocol is not parsed.
        !head.isKeepAlive || isOfOldVersion(head) || head.method == .CONNECT
            || head.headers.contains(name: "Upgrade")
    }

    private static func isOfOldVersion(_ head: HTTPRequestHead) -> Bool {
        head.version == .http1_0 || head.version == .http0_9
    }

    /// Whether the client sends the body once it is told to. One of an old version knows no interim
    /// answers.
    static func waits(_ head: HTTPRequestHead) -> Bool {
        !isOfOldVersion(head) && head.headers.contains(name: "Expect")
    }

    static func refusal(of head: HTTPRequestHead) -> Refusal? {
        let headers = HTTPHeaders(head.headers)
        let hosts = headers.values("Host").count
        if hosts > 1 { return Refusal(status: 400, reason: "the request has more than one Host") }
        // The rest is HTTP/1.1's.
        guard !isOfOldVersion(head) else { return nil }
        if let coding = headers.all("Transfer-Encoding"), coding.lowercased() != "chunked" {
            return Refusal(
                status: 400, reason: "a body has no transfer coding but chunked here")
        }
        if hosts == 0 { return Refusal(status: 400, reason: "the request has no Host") }
        for expectation in headers.values("Expect")
        where expectation.lowercased() != "100-continue" {
            return Refusal(
                status: 417,
                reason: "of what a request may expect there is only 100-continue here")
        }
        return nil
    }

    /// - Parameter error: why the parser gave up.
    static func refusal(
        by error: HTTPParserError, _ limits: HTTPListenerSettings.Limits
    ) -> Refusal {
        switch error {
        case .headerOverflow:
            Refusal(
                status: 431,
                reason: "the request line and the headers are too long: at most "
                    + "\(limits.headerBytesMax) bytes and \(limits.headersMax) headers")
        case .invalidMethod: Refusal(status: 400, reason: "this is no method of HTTP")
        default:
            Refusal(
                status: 400,
                reason: "this is no request of HTTP/1.1: \(error.debugDescription)")
        }
    }
}
