// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import Synchronization

/// Bounds what one connection takes: a place of its peer's share, its peer's pace, and the time for
/// a first head, a request, an answer and in all. Where the listener decides by heads, it has that
/// done, and nothing more of a refused request gets beyond it. Hummingbird's own timer begins anew with each part of a
/// request, and stands still while an answer is written. It also says why a request that is not HTTP
/// is refused, which Hummingbird answers without a word.
final class ConnectionBounds: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let limits: HTTPListenerSettings.Limits
    private let shares: PeerShares
    private let responder: ListenerResponder
    private let admission: ListenerAdmission?
    /// Who has taken a place, until it is given back.
    private var peer: String?
    private var lifetime: Scheduled<Void>?
    /// Runs until the head of the first request is there.
    private var firstHead: Scheduled<Void>?
    /// Runs from a request's head to its end, but while it waits for the budget.
    private var request: Scheduled<Void>?
    /// Whether the end of the request that has come last is there.
    private var isWhole = true
    /// Runs from an answer's head until the kernel has all of it.
    private var answer: Scheduled<Void>?
    private var unanswered = 0
    /// Those of them that were passed on, or are answered here.
    private var begun = 0
    /// Whether the connection ends with the answer that comes next.
    private var isEnding = false
    private let rules = RequestHeadRules()
    /// Why the last request is refused; nothing that comes after it is read.
    private var refusal: RequestHeadRules.Refusal?
    /// What has been read and waits for what `hold` says. Meanwhile no more is read.
    private var early = CircularBuffer<HTTPRequestPart>()
    private var hold: Hold?
    /// Counts the holds: a timer that is due may still run after it was cancelled, and what comes late
    /// for one hold must not end another.
    private var holds = 0
    /// Whether the time of the first of these requests has come.
    private var isTurn = false
    private var isReadWanted = false
    /// Its place among the listener's connections, where there is `admission`.
    private var place: OpenConnections.ID?
    /// What was decided on the first of the early requests, until it is passed on.
    private var decided: HTTPAdmission?
    /// The questions of requests that were passed on, until the responder takes them.
    private var admitted = CircularBuffer<HTTPQuestion>()
    /// What the request that is under way has of the budget.
    private var taken: (bytes: Int, payer: BodyBudget.Payer)?
    /// Whether what is left of a refused request's body is thrown away.
    private var isDraining = false

    /// What the first of the early requests waits for.
    private enum Hold {
        /// The time at which its peer may be answered again.
        case turn(Scheduled<Void>)
        /// The answers to those before it, which the listener's own must not overtake.
        case answers
        /// Room for its body, at most until the end of this timer.
        case budget(Scheduled<Void>)
    }

    private enum Step {
        case pass, wait
        case refuse(HTTPAnswer)
    }

    init(
        _ limits: HTTPListenerSettings.Limits, _ shares: PeerShares,
        responder: ListenerResponder, _ admission: ListenerAdmission?
    ) {
        self.limits = limits
        self.shares = shares
        self.responder = responder
        self.admission = admission
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
        place = admission?.connections.opened(context.channel, peer: name)
        // A connection that is gone already has no options.
        let options = context.channel.syncOptions
        try? options?.setOption(
            ChannelOptions.socketOption(.so_sndbuf), value: limits.sendBufferBytes)
        if admission != nil {
            // What is read beyond a head is kept until it was decided on.
            try? options?.setOption(ChannelOptions.maxMessagesPerRead, value: 1)
            try? options?.setOption(
                ChannelOptions.recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 1024, initial: 2048, maximum: Self.readBytesMax))
        }
        firstHead = after(limits.firstHeadTimeMax, context) { _ in context.close(promise: nil) }
        lifetime = after(limits.connectionLifetimeMax, context) { handler in
            handler.isEnding = true
            if handler.unanswered == 0 { context.close(promise: nil) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for timer in [lifetime, firstHead, request, answer] { timer?.cancel() }
        if case .turn(let timer) = hold { timer.cancel() }
        if let peer { shares.giveBack(of: peer) }
        peer = nil
        guard let admission, let place else { return }
        stopWaiting(admission, place)
        giveBack()
        admission.connections.closed(place)
        self.place = nil
    }

    /// Its channel may be read in pieces of so many bytes.
    private static let readBytesMax = 16 << 10

    // MARK: Its requests and answers

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard refusal == nil else { return }
        let part = unwrapInboundIn(data)
        switch part {
        case .head:
            firstHead?.cancel()
            refusal = rules.refusal
            if refusal != nil { break }
            unanswered += 1
            isWhole = false
            // What is held is not read on, and has no time.
            if hold == nil { timeRequest(context) }
            early.append(part)
        case .body: early.append(part)
        case .end:
            isWhole = true
            request?.cancel()
            early.append(part)
        }
        if hold == nil { passOn(context) }
    }

    /// Passes on what has come, up to a request that has to wait.
    private func passOn(_ context: ChannelHandlerContext) {
        while let part = early.first {
            // It has been closed.
            if admission != nil, place == nil { return }
            if isDraining {
                early.removeFirst()
                if case .end = part { isDraining = false }
                continue
            }
            if case .head(let head) = part {
                switch step(head, context) {
                case .wait: return
                case .refuse(let answer):
                    early.removeFirst()
                    answerAtOnce(answer, to: head, context)
                    continue
                case .pass: break
                }
                begin()
                askToContinue(head, context)
            }
            context.fireChannelRead(wrapInboundOut(early.removeFirst()))
        }
        // Hummingbird answers it after the requests before it, as an error of its parser.
        if refusal != nil { context.fireErrorCaught(HTTPParserError.unknown) }
    }

    /// What becomes of the first of the early requests now.
    private func step(_ head: HTTPRequest, _ context: ChannelHandlerContext) -> Step {
        if !isTurn {
            isTurn = true
            let wait = shares.wait(of: peer ?? "", now: .now())
            guard wait <= .zero else {
                request?.cancel()
                holds += 1
                hold = .turn(after(wait, context) { [holds] in $0.goOn(context, from: holds) })
                return .wait
            }
        }
        guard let admission, let place else {
            isTurn = false
            return .pass
        }
        guard begun == 0 else {
            // Nothing of it is read while it waits.
            request?.cancel()
            holds += 1
            hold = .answers
            return .wait
        }
        let decision = decided ?? decide(head, admission)
        decided = decision
        switch decision {
        case .refused(let answer):
            decided = nil
            isTurn = false
            return .refuse(answer)
        case .admitted(let request):
            if taken == nil, !take(request, (admission, place), context) {
                self.request?.cancel()
                hold = .budget(
                    after(limits.requestTimeMax, context) { [holds] in
                        $0.giveUp(head, context, from: holds)
                    })
                return .wait
            }
            decided = nil
            isTurn = false
            return .pass
        }
    }

    // MARK: Admission

    private func decide(_ head: HTTPRequest, _ admission: ListenerAdmission) -> HTTPAdmission {
        switch responder.question(in: head) {
        case .failure(let refusal): return .refused(responder.formatted(refusal.answer))
        case .success(var question):
            let decision = admission.decide(question)
            guard case .admitted(let request) = decision else { return decision }
            guard (question.announcedBytes ?? 0) <= request.bodyBytesMax else {
                return .refused(responder.formatted(responder.tooLong(request.bodyBytesMax)))
            }
            question.admitted = request.finding
            question.bodyBytesMax = request.bodyBytesMax
            admitted.append(question)
            return decision
        }
    }

    /// Takes from the budget what the request may need.
    private func take(
        _ request: HTTPAdmitted,
        _ listener: (admission: ListenerAdmission, place: OpenConnections.ID),
        _ context: ChannelHandlerContext
    ) -> Bool {
        if !request.caller.isEmpty { listener.admission.connections.becameKnown(listener.place) }
        // What waits for room is under way: nobody else's connection takes its place.
        listener.admission.connections.requestBegan(listener.place)
        let announced = admitted.last?.announcedBytes ?? request.bodyBytesMax
        let bytes = announced + BodyBudget.requestBytes
        let eventLoop = context.eventLoop
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: eventLoop)
        let payer = BodyBudget.Payer(
            caller: request.caller, address: request.caller.isEmpty ? peer ?? "" : "",
            isReplica: request.isReplica)
        taken = (bytes, payer)
        holds += 1
        let isTaken = listener.admission.budget.take(
            bytes, of: payer, for: listener.place
        ) { [holds] in
            eventLoop.execute {
                bound.value.handler.goOn(bound.value.context, from: holds)
            }
        }
        return isTaken
    }

    /// The responder takes the question of the request that was passed on last.
    func takeAdmitted() -> HTTPQuestion? { admitted.popFirst() }

    private func begin() {
        begun += 1
        if let place { admission?.connections.requestBegan(place) }
    }

    private func ended(_ context: ChannelHandlerContext) {
        unanswered = max(0, unanswered - 1)
        begun = max(0, begun - 1)
        giveBack()
        if let place, let admission {
            admission.connections.answerEnded(place)
            admission.connections.requestEnded(place)
        }
        if isEnding { return context.close(promise: nil) }
        if case .answers = hold { goOn(context, from: holds) }
    }

    private func giveBack() {
        guard let taken else { return }
        admission?.budget.giveBack(taken.bytes, of: taken.payer)
        self.taken = nil
    }

    /// What was given meanwhile stays taken, and is given back.
    private func stopWaiting(_ admission: ListenerAdmission, _ place: OpenConnections.ID) {
        guard case .budget(let timer) = hold else { return }
        timer.cancel()
        hold = nil
        if admission.budget.stopWaiting(place) { taken = nil }
        giveBack()
    }

    /// There has been no room for a body in time.
    private func giveUp(_ head: HTTPRequest, _ context: ChannelHandlerContext, from number: Int) {
        guard let admission, let place, number == holds, case .budget = hold else { return }
        stopWaiting(admission, place)
        decided = nil
        isTurn = false
        _ = admitted.popLast()
        early.removeFirst()
        var answer = responder.formatted(
            .text("too many bodies are being read", status: 503))
        answer.headers["Retry-After"] = "1"
        answerAtOnce(answer, to: head, context)
        hold = .answers
        goOn(context, from: holds)
    }

    /// Answers a request of which nothing was passed on, and has its body thrown away.
    private func answerAtOnce(
        _ answer: HTTPAnswer, to head: HTTPRequest, _ context: ChannelHandlerContext
    ) {
        begin()
        admission?.refused?(head.method.rawValue, answer.status)
        var headers = ListenerResponder.headers(of: answer)
        headers[.date] = HTTPDate.now
        let length = ListenerResponder.announcedBytes(head.headerFields)
        let isDrained = length == 0 || length.map { admission?.drains.take($0) ?? false } ?? false
        if !isDrained || head.headerFields[.connection]?.lowercased() == "close" {
            headers[.connection] = "close"
        }
        isDraining = true
        let status = HTTPResponse.Status(code: answer.status)
        write(
            context: context,
            data: wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: headers))),
            promise: nil)
        if head.method != .head {
            let body = ByteBuffer(bytes: answer.body)
            write(context: context, data: wrapOutboundOut(.body(body)), promise: nil)
        }
        write(context: context, data: wrapOutboundOut(.end(nil)), promise: nil)
        context.flush()
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

    /// What the first of the early requests waited for is there.
    private func goOn(_ context: ChannelHandlerContext, from number: Int) {
        guard hold != nil, number == holds, place != nil || admission == nil else { return }
        if case .budget(let timer) = hold { timer.cancel() }
        if !isWhole { timeRequest(context) }
        hold = nil
        passOn(context)
        context.fireChannelReadComplete()
        guard hold == nil, isReadWanted else { return }
        isReadWanted = false
        context.read()
    }

    func read(context: ChannelHandlerContext) {
        if hold == nil { context.read() } else { isReadWanted = true }
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
        case .body(let buffer):
            // What is shorter is with the kernel at once.
            if let place, buffer.readableBytes > Self.shortAnswer {
                admission?.connections.answerBegan(place, bytes: buffer.readableBytes)
            }
        case .end:
            let written = promise ?? context.eventLoop.makePromise()
            promise = written
            written.futureResult.assumeIsolated().whenComplete { [self] _ in
                answer?.cancel()
                ended(context)
            }
        }
        context.write(data, promise: promise)
    }

    private static let shortAnswer = 4096

    /// Writes head and body of an answer; its end is Hummingbird's.
    private func refuse(
        _ refusal: RequestHeadRules.Refusal, _ context: ChannelHandlerContext,
        _ promise: EventLoopPromise<Void>?
    ) {
        let plain = HTTPAnswer.text(refusal.reason, status: refusal.status.code)
        var answer = responder.formatted(plain)
        answer.headers["Connection"] = "close"
        let head = HTTPResponse(
            status: refusal.status, headerFields: ListenerResponder.headers(of: answer))
        context.write(wrapOutboundOut(.head(head)), promise: promise)
        context.write(wrapOutboundOut(.body(ByteBuffer(bytes: answer.body))), promise: nil)
    }

    /// From now on the rest of the request has its time.
    private func timeRequest(_ context: ChannelHandlerContext) {
        restart(&request, limits.requestTimeMax, context)
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
