// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import OpenSSL

/// Decrypts what comes in and encrypts what goes out, by the OpenSSL that the rest of the program uses, and
/// not by the second one that swift-nio-ssl would bring along.
final class TLSHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var pipe: TLSPipe
    /// Whether the bytes that have come held anything for the next handler.
    private var hasPassedOn = false

    init(_ context: TLSContext) { pipe = TLSPipe(context: context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var plain: [ByteBuffer] = []
        let outcome = unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            pipe.receive(bytes) { plain.append(context.channel.allocator.buffer(bytes: $0)) }
        }
        sendOutput(context)
        for buffer in plain {
            hasPassedOn = true
            context.fireChannelRead(wrapInboundOut(buffer))
        }
        switch outcome {
        case .open: break
        case .closed, .failed: context.close(promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // Nobody else would ask for the rest of a handshake or of a record.
        if !hasPassedOn { context.read() }
        hasPassedOn = false
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let outcome = unwrapOutboundIn(data).withUnsafeReadableBytes { pipe.send($0) }
        guard outcome == .open else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return context.close(promise: nil)
        }
        var output = context.channel.allocator.buffer(capacity: 0)
        pipe.takeOutput { output.writeBytes($0) }
        context.write(wrapOutboundOut(output), promise: promise)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input {
            pipe.close()
            sendOutput(context)
        }
        context.close(mode: mode, promise: promise)
    }

    private func sendOutput(_ context: ChannelHandlerContext) {
        var output = context.channel.allocator.buffer(capacity: 0)
        pipe.takeOutput { output.writeBytes($0) }
        if output.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(output), promise: nil) }
    }
}
