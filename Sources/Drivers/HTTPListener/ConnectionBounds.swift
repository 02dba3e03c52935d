// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import Synchronization

/// Bounds what one connection takes: a place of its peer's share, and the time for a request, for
/// an answer and in all. Hummingbird's own timer begins anew with each part of a request, and stands
/// still while an answer is written. It also says why a request that is not HTTP is refused, which
/// Hummingbird answers without a word.
final class ConnectionBounds: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limits: HTTPListenerSettings.Limits
    private let shares: PeerShares
    /// Who has taken a place, until it is given back.
    private var peer: String?
    private var lifetime: Scheduled<Void>?
    /// Runs from a request's head to its end.
    private var request: Scheduled<Void>?
    /// Runs from an answer's head until the kernel has all of it.
    private var answer: Scheduled<Void>?
    private var unanswered = 0
    /// Whether the connection ends with the answer that comes next.
    private var isEnding = false
    /// Why the last request cannot be read.
    private var unreadable: String?

    init(_ limits: HTTPListenerSettings.Limits, _ shares: PeerShares) {
        self.limits = limits
        self.shares = shares
    }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { opened(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        opened(context)
        context.fireChannelActive()
    }

    private func opened(_ context: ChannelHandlerContext) {
        guard lifetime == nil else { return }
        let address = context.remoteAddress?.ipAddress ?? ""
        guard shares.take(for: address) else { return context.close(promise: nil) }
        peer = address
        lifetime = after(limits.connectionLifetimeMax, context) { handler in
            handler.isEnding = true
            if handler.unanswered == 0 { context.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for timer in [lifetime, request, answer] { timer?.cancel() }
        if let peer { shares.giveBack(of: peer) }
        peer = nil
    }

    // MARK: Its requests and answers

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            unanswered += 1
            restart(&request, limits.requestTimeMax, context)
        case .body: break
        case .end: request?.cancel()
        }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError { unreadable = text(of: error) }
        context.fireErrorCaught(error)
    }

    private func text(of error: HTTPParserError) -> String {
        switch error {
        case .headerOverflow:
            "the request line and the headers are too long: at most \(limits.headerBytesMax) bytes "
                + "and \(limits.headersMax) headers"
        case .invalidMethod: "this is no method of HTTP"
        default: "this is no request of HTTP/1.1: \(error.debugDescription)"
        }
    }

    func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        var promise = promise
        switch unwrapOutboundIn(data) {
        case .head(let head):
            if head.headerFields[.connection] == "close" { isEnding = true }
            restart(&answer, limits.answerTimeMax, context)
            // Answers of this program have a body.
            if let unreadable, head.status == .badRequest,
                head.headerFields[.contentLength] == "0"
            {
                return refuse(unreadable, context, promise)
            }
        case .body: break
        case .end:
            let written = promise ?? context.eventLoop.makePromise()
            promise = written
            written.futureResult.assumeIsolated().whenComplete { [self] _ in
                answer?.cancel()
                unanswered = max(0, unanswered - 1)
                if isEnding { context.close(promise: nil) }
            }
        }
        context.write(data, promise: promise)
    }

    /// Writes head and body of an answer; its end is Hummingbird's.
    private func refuse(
        _ reason: String, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?
    ) {
        var answer = HTTPAnswer.text(reason, status: 400)
        answer.headers["Connection"] = "close"
        let head = HTTPResponse(
            status: .badRequest, headerFields: ListenerResponder.headers(of: answer))
        context.write(wrapOutboundOut(.head(head)), promise: promise)
        context.write(wrapOutboundOut(.body(ByteBuffer(bytes: answer.body))), promise: nil)
    }

    private func restart(
        _ timer: inout Scheduled<Void>?, _ limit: Duration, _ context: ChannelHandlerContext
    ) {
        timer?.cancel()
        timer = after(limit, context) { _ in context.close(promise: nil) }
    }

    private func after(
        _ limit: Duration, _ context: ChannelHandlerContext,
        _ body: @escaping (ConnectionBounds) -> Void
    ) -> Scheduled<Void> {
        context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) { [self] in
            body(self)
        }
    }
}

/// Counts each peer's connections, so that a single one cannot take all places of a listener.
final class PeerShares: Sendable {
    /// Addresses with an open connection, so never more than the listener has places.
    private let open = Mutex<[String: Int]>([:])
    private let most: Int

    init(most: Int) { self.most = most }

    /// - Returns: false if the peer has all of its share already.
    func take(for peer: String) -> Bool {
        open.withLock { open in
            let count = open[peer, default: 0]
            guard count < most else { return false }
            open[peer] = count + 1
            return true
        }
    }

    func giveBack(of peer: String) {
        open.withLock { open in
            let count = open[peer, default: 0]
            open[peer] = count > 1 ? count - 1 : nil
        }
    }
}
