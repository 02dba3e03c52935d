// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// One client: its socket, TLS and HTTP/2. Moves bytes; what they mean is the desk's and the
/// loop's business.
final class SimulatorConnection {
    enum State {
        case handshaking
        case open
        /// GOAWAY is said: closes when the streams have ended and everything is written.
        case leaving
        /// To be dropped by the loop.
        case dead
    }

    let accepted: AcceptedSocket
    let desk: RequestDesk
    private var tls: TLSStream
    let session: ServerSession
    private(set) var state = State.handshaking
    /// What epoll is asked for.
    var interest: Epoll.Interest = .read
    private(set) var wantsWritable = false

    /// SETTINGS with the full stream limit went out: a provider token was valid.
    var isWidened = false
    /// Monotonic nanoseconds.
    let acceptedAt: Int64

    /// One TLS record of what is on its way out. TLS wants the same bytes again after a short
    /// write, so they wait here.
    private var output = [UInt8](repeating: 0, count: 16_384)
    private var outputStart = 0
    private var outputEnd = 0

    init(_ accepted: AcceptedSocket, context: TLSContext, desk: RequestDesk, now: Int64) {
        self.accepted = accepted
        self.desk = desk
        tls = TLSStream(
            context: context, descriptor: accepted.socket.descriptor, serverName: nil)
        session = ServerSession(requests: desk, streamLimit: desk.streamLimit)
        acceptedAt = now
    }

    var tag: UInt64 { UInt64(accepted.number) }
    var isDead: Bool { state == .dead }

    /// The client has reset the connection, or the network has.
    var hasFailed: Bool { accepted.socket.pendingError() != nil }

    /// True when TLS is up.
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
        /// The desk has news.
        case more
        /// Nothing until the descriptor is readable, or ever.
        case drained
    }

    /// Reads and digests one record.
    func readRecord(into buffer: inout [UInt8]) -> Reading {
        let transfer = buffer.withUnsafeMutableBytes { tls.read(into: $0) }
        switch transfer {
        case .bytes(let count):
            let isUnderstood = buffer.withUnsafeBytes { bytes in
                (try? session.receive(UnsafeRawBufferPointer(rebasing: bytes[..<count]))) != nil
            }
            if !isUnderstood {
                // nghttp2 has a GOAWAY ready that says why.
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

    /// Sends what waits, as far as the socket takes it.
    func write() {
        guard state == .open || state == .leaving else { return }
        wantsWritable = false
        while fillOutput() {
            let transfer = output.withUnsafeBytes {
                tls.write(UnsafeRawBufferPointer(rebasing: $0[outputStart..<outputEnd]))
            }
            switch transfer {
            case .bytes(let count):
                outputStart += count
                precondition(outputStart <= outputEnd, "TLS has taken more than there was")
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
        precondition(outputEnd <= output.count, "frames run over the end of the output")
        if filled == nil { state = .dead }
        return outputEnd > 0
    }

    func goAway(lastStream: Int32, debugData: [UInt8]) {
        guard state == .open else { return }
        session.goAway(lastStream: lastStream, errorCode: 0, debugData: debugData)
        state = .leaving
    }

    /// Ends in order, with close_notify.
    func close() {
        tls.close()
        state = .dead
    }

    /// Ends with a TCP reset.
    func reset() {
        accepted.socket.resetOnClose()
        state = .dead
    }
}
