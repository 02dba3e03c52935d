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
    private var isEnding = false
    private var isReadWanted = false

    /// - Parameter connectionsMax: further ones wait in the system's queue.
    init(connectionsMax: Int, eventLoop: any EventLoop) {
        self.connectionsMax = connectionsMax
        ended = eventLoop.makePromise()
    }

    /// When all have ended, and no answer is being made.
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

    func channelInactive(context: ChannelHandlerContext) {
        context.fireChannelInactive()
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
        ended.fail(error)
    }

    private func endIfOver() {
        if isEnding, channels.isEmpty, answers == 0 { ended.succeed() }
    }
}
