// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import Synchronization

/// Bounds what one connection takes: a place of its peer's share, its peer's pace, and the time for
/// a request, for an answer and in all. Hummingbird's own timer begins anew with each part of a
/// request, and stands still while an answer is written. It also says why a request that is not HTTP
/// is refused, which Hummingbird answers without a word.
final class ConnectionBounds: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limits: HTTPListenerSettings.Limits
    private let shares: PeerShares
    private let formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
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
    private let rules = RequestHeadRules()
    /// Why the last request is refused; nothing that comes after it is read.
    private var refusal: RequestHeadRules.Refusal?
    /// What has been read and waits until its peer may be answered again. Meanwhile no more is read.
    private var early = CircularBuffer<HTTPRequestPart>()
    /// Runs until the first of these requests may be answered.
    private var turn: Scheduled<Void>?
    /// Whether that time has come.
    private var isTurn = false
    private var isReadWanted = false

    /// - Parameter formatRefusal: as `HTTPListenerSettings.formatRefusal`.
    init(
        _ limits: HTTPListenerSettings.Limits, _ shares: PeerShares,
        formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
    ) {
        self.limits = limits
        self.shares = shares
        self.formatRefusal = formatRefusal
    }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            let pipeline = context.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(rules, position: .after(decoder))
        } catch {
            preconditionFailure("the pipeline has no decoder of HTTP: \(error)")
        }
        if context.channel.isActive { opened(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        opened(context)
        context.fireChannelActive()
    }

    private func opened(_ context: ChannelHandlerContext) {
        guard lifetime == nil else { return }
        let name = PeerShares.name(of: context.remoteAddress?.ipAddress)
        guard shares.take(for: name, now: .now()) else { return context.close(promise: nil) }
        peer = name
        // A connection that is gone already has no options.
        try? context.channel.syncOptions?.setOption(
            ChannelOptions.socketOption(.so_sndbuf), value: limits.sendBufferBytes)
        lifetime = after(limits.connectionLifetimeMax, context) { handler in
            handler.isEnding = true
            if handler.unanswered == 0 { context.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for timer in [lifetime, request, answer, turn] { timer?.cancel() }
        if let peer { shares.giveBack(of: peer) }
        peer = nil
    }

    // MARK: Its requests and answers

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard refusal == nil else { return }
        let part = unwrapInboundIn(data)
        switch part {
        case .head:
            refusal = rules.refusal
            if refusal != nil { break }
            unanswered += 1
            restart(&request, limits.requestTimeMax, context)
            early.append(part)
        case .body: early.append(part)
        case .end:
            request?.cancel()
            early.append(part)
        }
        if turn == nil { passOn(context) }
    }

    /// Passes on what has come, up to a request whose turn is later.
    private func passOn(_ context: ChannelHandlerContext) {
        while let part = early.first {
            if case .head = part, !isTurn {
                let wait = shares.wait(of: peer ?? "", now: .now())
                guard wait <= .zero else {
                    turn = after(wait, context) { $0.takeTurn(context) }
                    return
                }
            }
            isTurn = false
            if case .head(let head) = part { askToContinue(head, context) }
            context.fireChannelRead(wrapInboundOut(early.removeFirst()))
        }
        // Hummingbird answers it after the requests before it, as an error of its parser.
        if refusal != nil { context.fireErrorCaught(HTTPParserError.unknown) }
    }

    /// Tells a client that waits for it to send its body, if that will be read.
    private func askToContinue(_ head: HTTPRequest, _ context: ChannelHandlerContext) {
        // An answer to a request before this one must not come after it.
        guard head.headerFields[.expect] != nil, unanswered == 1,
            !ListenerResponder.isTooLong(head.headerFields, limits.bodyBytesMax)
        else { return }
        context.writeAndFlush(
            wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
    }

    private func takeTurn(_ context: ChannelHandlerContext) {
        turn = nil
        isTurn = true
        passOn(context)
        context.fireChannelReadComplete()
        guard turn == nil, isReadWanted else { return }
        isReadWanted = false
        context.read()
    }

    func read(context: ChannelHandlerContext) {
        if turn == nil { context.read() } else { isReadWanted = true }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What follows a head that is refused need not be readable, and the head's reason is told.
        if let error = error as? HTTPParserError { refusal = refusal ?? refusal(by: error) }
        context.fireErrorCaught(error)
    }

    private func refusal(by error: HTTPParserError) -> RequestHeadRules.Refusal {
        switch error {
        case .headerOverflow:
            RequestHeadRules.Refusal(
                status: .requestHeaderFieldsTooLarge,
                reason: "the request line and the headers are too long: at most "
                    + "\(limits.headerBytesMax) bytes and \(limits.headersMax) headers")
        case .invalidMethod:
            RequestHeadRules.Refusal(status: .badRequest, reason: "this is no method of HTTP")
        default:
            RequestHeadRules.Refusal(
                status: .badRequest,
                reason: "this is no request of HTTP/1.1: \(error.debugDescription)")
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
            if let refusal, head.status == .badRequest,
                head.headerFields[.contentLength] == "0"
            {
                return refuse(refusal, context, promise)
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
        _ refusal: RequestHeadRules.Refusal, _ context: ChannelHandlerContext,
        _ promise: EventLoopPromise<Void>?
    ) {
        let plain = HTTPAnswer.text(refusal.reason, status: refusal.status.code)
        var answer = formatRefusal?(plain) ?? plain
        answer.headers["Connection"] = "close"
        let head = HTTPResponse(
            status: refusal.status, headerFields: ListenerResponder.headers(of: answer))
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
