// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore

/// The connections of a listener, on its event loop: no more are accepted than there may be, and they end
/// with the listener, each after the answer that is under way.
final class AcceptedConnections: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never
    typealias OutboundOut = Never

    private let connectionsMax: Int
    private let ended: EventLoopPromise<Void>
    private var channels: [ObjectIdentifier: any Channel] = [:]
    private var port: (any Channel)?
    private var answers = 0
    private(set) var isEnding = false
    /// Why there is no port.
    private var failure: (any Error)?
    private var lastError: (any Error)?
    private var isReadWanted = false

    /// - Parameter connectionsMax: further ones wait in the system's queue.
    init(connectionsMax: Int, eventLoop: any EventLoop) {
        self.connectionsMax = connectionsMax
        ended = eventLoop.makePromise()
    }

    /// When all have ended, and no answer is being made; it fails if the port did.
    var end: EventLoopFuture<Void> { ended.futureResult }

    func handlerAdded(context: ChannelHandlerContext) { port = context.channel }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        if isEnding { context.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
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
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        guard channels.count < connectionsMax else { return isReadWanted = true }
        context.read()
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
        port?.close(promise: nil)
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
