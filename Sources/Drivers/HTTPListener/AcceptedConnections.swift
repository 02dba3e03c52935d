// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import NIOCore

/// The connections of a listener, on its event loop: no more are accepted than there may be, and they end
/// with the listener, each after the answer that is under way. Where newcomers take the places of others, all
/// are accepted at once, and opened a few at a time.
final class AcceptedConnections: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    private let connectionsMax: Int
    /// Those that are not opened yet; nil where each is opened as it comes.
    private var waiting: WaitingConnections<any Channel>?
    private let newcomers: Newcomers?
    private let ended: EventLoopPromise<Void>
    private var channels: [ObjectIdentifier: any Channel] = [:]
    private var context: ChannelHandlerContext?
    private var port: (any Channel)? { context?.channel }
    private let eventLoop: any EventLoop
    /// When the next doubtful newcomer may take the place of another.
    private var evictedAt = NIODeadline.uptimeNanoseconds(0)
    private lazy var opening = Deadline(on: eventLoop) { [unowned self] in openWaiting() }
    private var answers = 0
    private(set) var isEnding = false
    /// Why there is no port.
    private var failure: (any Error)?
    private var lastError: (any Error)?
    private var isReadWanted = false

    /// What decides who is opened when.
    struct Newcomers {
        let waiting: WaitingConnections<any Channel>
        /// Whether connections from there have ended lately on which nobody had shown who they are.
        let isDoubtful: (_ peer: String) -> Bool
        /// Whether the next takes the place of another on which nobody has shown who they are.
        let evicts: () -> Bool
        /// How many places there are of these.
        let slots: Int
    }

    /// - Parameters:
    ///   - connectionsMax: further ones wait in the system's queue, or here.
    ///   - newcomers: nil where each connection is opened as it comes.
    init(connectionsMax: Int, newcomers: Newcomers?, eventLoop: any EventLoop) {
        self.connectionsMax = connectionsMax
        self.newcomers = newcomers
        waiting = newcomers?.waiting
        self.eventLoop = eventLoop
        ended = eventLoop.makePromise()
    }

    /// When all have ended, and no answer is being made; it fails if the port did.
    var end: EventLoopFuture<Void> { ended.futureResult }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        if isEnding { context.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        guard let newcomers else { return open(channel, context) }
        let peer = PeerShares.name(of: Self.ipAddress(of: channel))
        waiting?.append(channel, isDoubtful: newcomers.isDoubtful(peer), now: .now())
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if !opening.isSet { openWaiting() }
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        guard waiting != nil || channels.count < connectionsMax else { return isReadWanted = true }
        context.read()
    }

    private func open(_ channel: any Channel, _ context: ChannelHandlerContext) {
        let id = ObjectIdentifier(channel)
        channels[id] = channel
        channel.closeFuture.assumeIsolated().whenComplete { [self] _ in
            channels[id] = nil
            if isReadWanted, channels.count < connectionsMax {
                isReadWanted = false
                port?.pipeline.syncOperations.read()
            }
            endIfOver()
        }
        context.fireChannelRead(wrapInboundOut(channel))
    }

    /// Opens a few, and the others after what the connections that are open have received meanwhile.
    private func openWaiting() {
        guard let context, !isEnding else { return }
        for channel in waiting?.givenUp(now: .now()) ?? [] { channel.close(promise: nil) }
        for _ in 0..<Self.openedAtOnce where channels.count < connectionsMax {
            let now = NIODeadline.now()
            let evicts = newcomers?.evicts() == true
            let channel = waiting?.next { !evicts || now >= evictedAt }
            guard let channel else { break }
            if evicts { evicted(now: now) }
            open(channel, context)
        }
        // NIO looks at its sockets once no task is due.
        if waiting?.count ?? 0 > 0 { opening.set(.milliseconds(1)) }
    }

    /// The next doubtful newcomer waits, so that each stranger has some time to ask before its place is taken.
    private func evicted(now: NIODeadline) {
        // What could not be opened while the thread was busy is made up for.
        evictedAt = max(evictedAt, now - TimeAmount(Self.timeToAsk / 10))
        evictedAt = evictedAt + TimeAmount(Self.timeToAsk / (newcomers?.slots ?? 1))
    }

    private static let timeToAsk = Duration.milliseconds(100)

    /// So many that those who are open are answered between them.
    static let openedAtOnce = 4

    /// The other end's, which NIO does not know before the connection is open; nil if it has gone.
    private static func ipAddress(of channel: any Channel) -> String? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let result = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { handle in
            withUnsafeMutableBytes(of: &address) { bytes in
                let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                guard getpeername(handle, address, &length) == 0 else { return false }
                return getnameinfo(
                    address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
            }
        }
        guard result == true else { return nil }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The port may go on, as without a free file descriptor. Until it is read again it must not be asked about, or
    /// the thread would spin. NIO's AcceptBackoffHandler only puts the next read off, and the one in which
    /// the error came is pending still.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        lastError = error
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.backoff) { [self] in
            try? port?.syncOptions?.setOption(.autoRead, value: true)
        }
    }

    private static let backoff = TimeAmount.seconds(1)

    func channelInactive(context: ChannelHandlerContext) {
        context.fireChannelInactive()
        if !isEnding { failure = lastError }
        close()
    }

    // MARK: Their end

    func answerBegan() { answers += 1 }

    func answerEnded() {
        answers -= 1
        endIfOver()
    }

    /// Accepts no more, and ends those that there are.
    func close() {
        guard !isEnding else { return }
        isEnding = true
        opening.cancel()
        port?.close(promise: nil)
        for channel in waiting?.removeAll() ?? [] { channel.close(promise: nil) }
        for channel in channels.values {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
        endIfOver()
    }

    /// The port could not be opened.
    func failed(_ error: any Error) {
        isEnding = true
        failure = error
        endIfOver()
    }

    private func endIfOver() {
        guard isEnding, channels.isEmpty, answers == 0 else { return }
        if let failure { ended.fail(failure) } else { ended.succeed() }
    }
}
