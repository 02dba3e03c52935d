// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

/// Looks at a request's head while it still has its version and each `Host`: the types that come
/// after it in the pipeline have neither. `ConnectionBounds` adds it, and asks it for what it found.
final class RequestHeadRules: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    /// Why a request is refused before anybody looks at what it asks for.
    struct Refusal: Equatable {
        var status: HTTPResponse.Status
        var reason: String
    }

    /// Of the head that has come last.
    private(set) var refusal: Refusal?

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else {
            return context.fireChannelRead(data)
        }
        refusal = Self.refusal(of: head)
        if Self.isOfOldVersion(head) {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            // It knows no interim answers.
            head.headers.remove(name: "Expect")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    private static func isOfOldVersion(_ head: HTTPRequestHead) -> Bool {
        head.version == .http1_0 || head.version == .http0_9
    }

    private static func refusal(of head: HTTPRequestHead) -> Refusal? {
        let hosts = head.headers["Host"].count
        if hosts > 1 {
            return Refusal(status: .badRequest, reason: "the request has more than one Host")
        }
        // The rest is HTTP/1.1's.
        guard !isOfOldVersion(head) else { return nil }
        if hosts == 0 {
            return Refusal(status: .badRequest, reason: "the request has no Host")
        }
        for expectation in head.headers["Expect"] where expectation.lowercased() != "100-continue" {
            return Refusal(
                status: .expectationFailed,
                reason: "of what a request may expect there is only 100-continue here")
        }
        return nil
    }
}
