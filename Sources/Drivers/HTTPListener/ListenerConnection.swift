// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import NIOCore
internal import NIOHTTP1

/// One connection of a listener. It takes one request after the other, has each answered, and bounds what its
/// client can take: a place of its peer's share, its peer's rate, memory, and the time for a first head, a
/// request, an answer and in all. What comes before it can be looked at is kept, and no more is read; but once
/// its client has sent all, NIO reads what the kernel has at once, so there is a bound to that, too.
/// Where the listener decides by heads, nothing of a refused request's body is kept.
final class ListenerConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// What the connections of a listener share.
    struct Shared {
        let limits: HTTPListenerSettings.Limits
        let peers: PeerShares
        let responder: ListenerResponder
        let admission: ListenerAdmission?
        let connections: AcceptedConnections
        let executor: EventLoopExecutor
    }

    /// The request that is under way.
    private struct Request {
        let head: HTTPRequestHead
        /// Nil until its body may be read.
        var http: HTTPRequest?
        var bodyBytesMax = 0
        /// What it has of the budget.
        var taken: (bytes: Int, payer: BodyBudget.Payer)?
        var hold: Hold?
        /// Whether its end is there.
        var isWhole = false
        /// Whether it is being answered. What still comes of its body is thrown away.
        var isDecided = false
        /// Whether the kernel has its answer.
        var isAnswered = false
    }

    /// What a request waits for before its body is read.
    private enum Hold {
        /// The time at which its peer may be answered again.
        case turn
        /// Room for its body.
        case room
    }

    private let shared: Shared
    private let eventLoop: any EventLoop
    private var context: ChannelHandlerContext?
    /// Who has taken a place, until it is given back.
    private var peer: String?
    /// The other end's, whole.
    private var address: String?
    /// Its place among the listener's connections, where there is `admission`.
    private var connectionID: OpenConnections.ID?
    /// Whether nobody has shown on it who they are, where there is `admission`.
    private var isStrangers = false
    /// What has come and was not looked at.
    private var parts = CircularBuffer<HTTPServerRequestPart>(initialCapacity: 4)
    /// Why nothing can come after them.
    private var failure: HTTPParserError?
    private var isInputClosed = false
    /// Whether what was read is being passed on: there may be more of it than is in `parts`.
    private var isReading = false
    private var request: Request?
    /// Counts its requests: who waited for room for one must not wake another.
    private var begun = 0
    private var isTaking = false
    private var isWriting = false
    /// Whether it ends with the answer that comes next.
    private var isEnding = false
    private var isListenerEnding = false
    private var answering: Task<Void, Never>?
    /// Until a head is there, the rest of a request, or what it is held for.
    private lazy var wait = Deadline(on: eventLoop) { [unowned self] in waitIsOver() }
    /// How often it was found after the end of `wait` that there is something to be read.
    private var looks = 0
    /// Until the kernel has an answer.
    private lazy var writing = Deadline(on: eventLoop) { [unowned self] in close() }
    private lazy var lifetime = Deadline(on: eventLoop) { [unowned self] in
        if request == nil { closeIfSilent() }
        isEnding = true
    }

    private var limits: HTTPListenerSettings.Limits { shared.limits }
    private var responder: ListenerResponder { shared.responder }

    init(_ shared: Shared, on eventLoop: any EventLoop) {
        self.shared = shared
        self.eventLoop = eventLoop
    }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        let name = PeerShares.name(of: context.remoteAddress?.ipAddress)
        guard shared.peers.take(for: name, now: .now()) else { return close() }
        peer = name
        address = context.remoteAddress?.ipAddress
        if let admission = shared.admission {
            let connectionID = admission.connections.opened(context.channel, peer: name)
            self.connectionID = connectionID
            // What a proxy has open is for many clients.
            isStrangers = !admission.proxies.contains(address)
            if !isStrangers { admission.connections.becameKnown(connectionID) }
        }
        lifetime.set(limits.connectionLifetimeMax)
        readOn()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        for deadline in [wait, writing, lifetime] { deadline.cancel() }
        if let peer { shared.peers.giveBack(of: peer, isStrangers: isStrangers, now: .now()) }
        if let connectionID {
            stopWaitingForRoom()
            // Who is making the answer has the body until then.
            if answering == nil { giveBack() }
            shared.admission?.connections.closed(connectionID)
        }
        (peer, connectionID, self.context) = (nil, nil, nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed {
            (isInputClosed, isReading) = (true, false)
            readOn()
        } else if event is ChannelShouldQuiesceEvent {
            (isEnding, isListenerEnding) = (true, true)
            answering?.cancel()
            if writing.isSet { writing.set(Self.timeToLeave) }
            if request?.isDecided != true || request?.isAnswered == true { close() }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        failure = failure ?? error as? HTTPParserError
    }

    private func close() { context?.close(promise: nil) }

    // MARK: What comes

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        isReading = true
        parts.append(unwrapInboundIn(data))
        takeParts()
        if parts.count > Self.partsMax { close() }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        readOn()
    }

    /// 256 short requests that wait for their turn. No client has so many under way.
    private static let partsMax = 512

    /// Whether the next part can be looked at: that of a request which is neither held nor whole, or of the
    /// next one.
    private var takesParts: Bool {
        guard let context, context.channel.isActive else { return false }
        return request.map { $0.hold == nil && !$0.isWhole } ?? true
    }

    private func takeParts() {
        guard !isTaking else { return }
        isTaking = true
        while takesParts, let part = parts.popFirst() { take(part) }
        isTaking = false
    }

    /// Asks for more, if all that has come was looked at.
    private func readOn() {
        guard !isReading, takesParts, parts.isEmpty else { return }
        if let failure { return breakOff(failure) }
        if isInputClosed { return close() }
        if !wait.isSet { wait.set(timeForMore) }
        context?.read()
    }

    private var timeForMore: Duration {
        if request != nil { return limits.requestTimeMax }
        return begun > 0 ? limits.idleTimeout : min(limits.firstHeadTimeMax, limits.idleTimeout)
    }

    private func take(_ part: HTTPServerRequestPart) {
        switch part {
        case .head(let head): begin(head)
        case .body(let bytes):
            guard request?.isDecided == false else { return }
            let bytesMax = request?.bodyBytesMax ?? 0
            let count = (request?.http?.body.count ?? 0) + bytes.readableBytes
            guard count <= bytesMax else { return respond(responder.tooLong(bytesMax)) }
            request?.http?.body += bytes.readableBytesView
        case .end:
            stopWaiting()
            request?.isWhole = true
            if request?.isAnswered == true {
                finish()
            } else if request?.isDecided == false {
                ask()
            }
        }
    }

    /// The client has sent what is no request, or no more of one.
    private func breakOff(_ failure: HTTPParserError) {
        guard let request else {
            // It has no head that could be read.
            self.request = Request(
                head: HTTPRequestHead(version: .http1_1, method: .GET, uri: ""), isWhole: true)
            return refuse(as: RequestHeadRules.refusal(by: failure, limits))
        }
        self.request?.isWhole = true
        guard request.isDecided else {
            return respond(
                responder.refusal(
                    "the body does not come as its headers announce it", status: 400,
                    isLast: true))
        }
        isEnding = true
        if request.isAnswered { close() }
    }

    // MARK: Time

    private func waitIsOver() {
        switch request?.hold {
        case .turn: goOn { decide() }
        case .room: giveUp()
        case nil: closeIfSilent()
        }
    }

    /// Closes the connection, unless there is something to be read: where others keep all cores busy, this
    /// thread may not have got the time to read what has come long ago.
    private func closeIfSilent() {
        // Past its age none is worth more time.
        guard bytesToRead > 0, !isEnding, looks < Self.looksMax else { return close() }
        looks += 1
        wait.set(Self.timeToRead)
    }

    /// Those that come next: behind a gap there may be more, which nobody can read.
    private var bytesToRead: CInt {
        var bytes: CInt = 0
        try? context?.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { _ = ioctl($0, UInt(FIONREAD), &bytes) }
        return bytes
    }

    private func stopWaiting() {
        wait.clear()
        looks = 0
    }

    /// It is read in the event loop's next turn, however long that takes to come.
    private static let timeToRead = Duration.milliseconds(100)
    /// Each is a turn, which reads up to 16 KiB; or a client that always sends would never be late.
    private static let looksMax = 10

    // MARK: A request's head

    private func begin(_ head: HTTPRequestHead) {
        stopWaiting()
        begun += 1
        request = Request(head: head)
        if let connectionID { shared.admission?.connections.requestBegan(connectionID) }
        if let refusal = RequestHeadRules.refusal(of: head) { return refuse(as: refusal) }
        let turn = shared.peers.wait(of: peer ?? "", now: .now())
        guard turn > .zero else { return decide() }
        request?.hold = .turn
        wait.set(turn)
    }

    /// What the request was held for is there.
    private func goOn(_ next: () -> Void) {
        request?.hold = nil
        stopWaiting()
        next()
        takeParts()
        readOn()
    }

    private func decide() {
        guard let head = request?.head else { return }
        switch responder.request(in: head) {
        case .failure(let refusal): refuse(refusal.answer)
        case .success(let http):
            guard let admission = shared.admission else {
                request?.http = http
                request?.bodyBytesMax = limits.bodyBytesMax
                return readBody()
            }
            switch admission.decide(http) {
            case .refused(let answer): refuse(answer)
            case .admitted(let request): admit(http, as: request, by: admission)
            }
        }
    }

    /// Takes from the budget what the request may need.
    private func admit(
        _ http: HTTPRequest, as admitted: HTTPAdmitted, by admission: ListenerAdmission
    ) {
        let announced = http.announcedBytes ?? admitted.bodyBytesMax
        guard announced <= admitted.bodyBytesMax else {
            return refuse(responder.tooLong(admitted.bodyBytesMax))
        }
        guard let connectionID else { return }
        request?.http = http
        request?.http?.admitted = admitted.finding
        request?.bodyBytesMax = admitted.bodyBytesMax
        if !admitted.caller.isEmpty, isStrangers {
            isStrangers = false
            admission.connections.becameKnown(connectionID)
        }
        var payer = BodyBudget.Payer(
            caller: admitted.caller, isReplica: admitted.isReplica, isDevice: admitted.isDevice)
        if payer.isStranger {
            payer.address = PeerShares.name(
                of: admission.proxies.client(
                    of: address, forwardedFor: http.headers.values(TrustedProxies.header)))
            request?.http?.strangersAddress = payer.address
        }
        let bytes = announced + BodyBudget.requestBytes
        request?.taken = (bytes, payer)
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        let isTaken = admission.budget.take(bytes, of: payer, for: connectionID) { [begun] in
            connection.eventLoop.execute { connection.value.roomCame(for: begun) }
        }
        guard !isTaken else { return readBody() }
        request?.hold = .room
        wait.set(limits.requestTimeMax)
    }

    private func roomCame(for number: Int) {
        guard number == begun, request?.hold == .room else { return }
        goOn { readBody() }
    }

    /// There has been no room for a body in time.
    private func giveUp() {
        stopWaitingForRoom()
        giveBack()
        var answer = responder.refusal("too many bodies are being read", status: 503)
        answer.headers["Retry-After"] = "1"
        goOn { refuse(answer) }
    }

    /// What was given meanwhile stays taken.
    private func stopWaitingForRoom() {
        guard let connectionID, request?.hold == .room else { return }
        if shared.admission?.budget.stopWaiting(connectionID) == true { request?.taken = nil }
    }

    private func giveBack() {
        guard let taken = request?.taken else { return }
        shared.admission?.budget.giveBack(taken.bytes, of: taken.payer)
        request?.taken = nil
    }

    /// Has the client send the body, unless it says that it is too long.
    private func readBody() {
        guard let request, let http = request.http else { return }
        let isTooLong =
            http.announcedBytes.map { $0 > request.bodyBytesMax }
            ?? (request.bodyBytesMax == 0)
        if isTooLong { return respond(responder.tooLong(request.bodyBytesMax)) }
        if RequestHeadRules.waits(request.head) {
            let interim = HTTPResponseHead(version: .http1_1, status: .continue)
            context?.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
        }
    }

    // MARK: Its answer

    private func ask() {
        guard let http = request?.http else { return }
        request?.isDecided = true
        shared.connections.answerBegan()
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        answering = Task(executorPreference: shared.executor) { [responder] in
            let answer = await responder.answer(http)
            connection.eventLoop.execute { connection.value.asked(answer) }
        }
    }

    private func asked(_ answer: HTTPAnswer) {
        answering = nil
        if context == nil { giveBack() }
        respond(answer)
        shared.connections.answerEnded()
    }

    /// Answers a request whose head is no good.
    private func refuse(as refusal: RequestHeadRules.Refusal) {
        respond(responder.refusal(refusal.reason, status: refusal.status, isLast: true))
    }

    /// Answers a request by its head. A client that still sends when its connection is closed may not see
    /// the answer, so the body is let run out, if it is not too long for that.
    private func refuse(_ answer: HTTPAnswer) {
        guard let head = request?.head else { return }
        shared.admission?.refused?(head.method.rawValue, answer.status)
        let isDrained =
            switch HTTPHeaders(head.headers).announcedBytes {
            case nil: false
            case 0: true
            // It is not sent, or is, as the client likes: what comes next may be a request.
            case _ where RequestHeadRules.waits(head): false
            case let bytes?:
                shared.admission?.drains.take(bytes) ?? (bytes <= limits.bodyBytesMax)
            }
        var answer = answer
        if !isDrained { answer.headers["Connection"] = "close" }
        respond(answer)
    }

    private func respond(_ answer: HTTPAnswer) {
        guard let context, let head = request?.head else { return }
        request?.isDecided = true
        var headers = ListenerResponder.headers(of: answer)
        // Strangers get one long answer a connection, or they would ask for it again before they have read it.
        let isLongForStranger = isStrangers && answer.body.count > Self.shortAnswer
        if isEnding || isLongForStranger || RequestHeadRules.isLast(head) {
            headers.replaceOrAdd(name: "Connection", value: "close")
        }
        isEnding = headers.contains(name: "Connection")
        if let connectionID, answer.body.count > Self.shortAnswer {
            shared.admission?.connections.answerBegan(connectionID, bytes: answer.body.count)
        }
        let written = eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [self] in answered($0) }
        isWriting = true
        let status = HTTPResponseStatus(statusCode: answer.status)
        context.write(
            wrapOutboundOut(
                .head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
            promise: nil)
        if head.method != .HEAD {
            write(ByteBuffer(bytes: answer.body), context)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
        isWriting = false
        if request?.isAnswered == true {
            goOnOrClose()
        } else {
            writing.set(isListenerEnding ? Self.timeToLeave : limits.answerTimeMax)
        }
    }

    /// No listener's end waits longer for a client that does not read.
    private static let timeToLeave = Duration.seconds(1)

    /// What is shorter is with the kernel at once.
    private static let shortAnswer = 4096
    private static let part = 64 << 10

    /// Writes a body in parts, so that it is known whether its client reads.
    private func write(_ body: ByteBuffer, _ context: ChannelHandlerContext) {
        var rest = body
        while let part = rest.readSlice(length: min(Self.part, rest.readableBytes)),
            part.readableBytes > 0
        {
            var promise: EventLoopPromise<Void>?
            if let connectionID, body.readableBytes > Self.shortAnswer {
                promise = eventLoop.makePromise()
                promise!.futureResult.assumeIsolated().whenSuccess { [self] in
                    shared.admission?.connections.answerMoved(
                        connectionID, bytes: part.readableBytes)
                }
            }
            context.write(wrapOutboundOut(.body(.byteBuffer(part))), promise: promise)
        }
    }

    private func answered(_ result: Result<Void, any Error>) {
        writing.clear()
        request?.isAnswered = true
        giveBack()
        if let connectionID, let connections = shared.admission?.connections {
            connections.answerEnded(connectionID)
            connections.requestEnded(connectionID)
        }
        if case .failure = result { isEnding = true }
        if !isWriting { goOnOrClose() }
    }

    /// Its answer is with the kernel.
    private func goOnOrClose() {
        if isEnding { return close() }
        if request?.isWhole == true { finish() }
    }

    /// On with the next request.
    private func finish() {
        if isEnding { return close() }
        request = nil
        takeParts()
        readOn()
    }
}
