// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// One client's socket, TLS and HTTP/2. It moves bytes; `OpenRequests` and the loop interpret them.
final class SimulatorConnection {
    enum State {
        case handshaking
        case open
        /// GOAWAY was sent. The connection closes once its streams have ended and everything is
        /// written.
        case leaving
        /// The loop must drop the connection.
        case dead
    }

    let accepted: AcceptedSocket
    let openRequests: OpenRequests
    private var tls: TLSStream
    let session: ServerSession
    private(set) var state = State.handshaking
    /// The events that epoll watches.
    var interest: Epoll.Interest = .read
    private(set) var wantsWritable = false

    /// Whether SETTINGS with the full stream limit were sent, because a provider token was valid.
    var isWidened = false
    /// When the connection was accepted, in monotonic nanoseconds.
    let acceptedAt: Int64

    /// One TLS record of output. After a short write TLS must be given the same bytes again, so
    /// they are kept here.
    private var output = [UInt8](repeating: 0, count: 16_384)
    private var outputStart = 0
    private var outputEnd = 0

    init(_ accepted: AcceptedSocket, context: TLSContext, openRequests: OpenRequests, now: Int64) {
        self.accepted = accepted
        self.openRequests = openRequests
        tls = TLSStream(
            context: context, descriptor: accepted.socket.descriptor, serverName: nil)
        session = ServerSession(requests: openRequests, streamLimit: openRequests.streamLimit)
        acceptedAt = now
    }

    var tag: UInt64 { UInt64(accepted.number) }
    var isDead: Bool { state == .dead }

    /// Whether the connection was reset.
    var hasFailed: Bool { accepted.socket.pendingError() != nil }

    /// Goes on with the TLS handshake; true once it is complete.
    func shakeHands() -> Bool {
        guard state == .handshaking else { return true }
        wantsWritable = false
        switch tls.handshake() {
        case .done: state = .open
        case .wantsRead: return false
        case .wantsWrite:
            wantsWritable = true
            return false
        case .failed:
            state = .dead
            return false
        }
        return true
    }

    enum Reading {
        /// Bytes were read, and `OpenRequests` may have new requests.
        case more
        /// Nothing was read, and nothing will be until the descriptor is readable, if ever.
        case drained
    }

    /// Reads and processes one TLS record.
    func readRecord(into buffer: inout [UInt8]) -> Reading {
        let transfer = buffer.withUnsafeMutableBytes { tls.read(into: $0) }
        switch transfer {
        case .bytes(let count):
            let isUnderstood = buffer.withUnsafeBytes { bytes in
                (try? session.receive(UnsafeRawBufferPointer(rebasing: bytes[..<count]))) != nil
            }
            if !isUnderstood {
                // nghttp2 has prepared a GOAWAY with the cause.
                write()
                state = .dead
            }
            return isDead ? .drained : .more
        case .wantsRead, .wantsWrite: return .drained
        case .closed, .failed:
            state = .dead
            return .drained
        }
    }

    /// Writes the waiting output, as far as the socket takes it.
    func write() {
        guard state == .open || state == .leaving else { return }
        wantsWritable = false
        openRequests.turn.publishCounts()
        while fillOutput() {
            let transfer = output.withUnsafeBytes {
                tls.write(UnsafeRawBufferPointer(rebasing: $0[outputStart..<outputEnd]))
            }
            switch transfer {
            case .bytes(let count):
                outputStart += count
                precondition(outputStart <= outputEnd, "TLS takes no more bytes than there are")
            case .wantsWrite:
                wantsWritable = true
                return
            case .wantsRead: return
            case .closed, .failed:
                state = .dead
                return
            }
        }
        if session.isFinished { close() }
    }

    private func fillOutput() -> Bool {
        if outputStart < outputEnd { return true }
        outputStart = 0
        let filled = output.withUnsafeMutableBytes { try? session.serialise(into: $0) }
        outputEnd = filled ?? 0
        precondition(outputEnd <= output.count, "frames end within the output")
        if filled == nil { state = .dead }
        return outputEnd > 0
    }

    func goAway(lastStream: Int32, debugData: [UInt8]) {
        guard state == .open else { return }
        session.goAway(lastStream: lastStream, errorCode: 0, debugData: debugData)
        state = .leaving
    }

    /// Ends the connection in order, with close_notify.
    func close() {
        tls.close()
        state = .dead
    }

    /// Ends the connection with a TCP reset.
    func reset() {
        accepted.socket.resetOnClose()
        state = .dead
    }
}
