// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Synchronization

/// One client of a `FrameServer`: what it has sent, and methods to answer it frame by frame, usable
/// from any thread.
final class FrameConnection: Sendable {
    /// A complete request.
    struct Request: Sendable {
        let stream: UInt32
        /// The number that `Trial` wrote into the body; nil for another's body.
        let push: Int?
    }

    /// What the server's thread has to do, in order.
    enum Order: Sendable {
        case send([UInt8])
        /// Ends the connection with a TCP reset.
        case cut
        /// Sends FIN and goes on reading.
        case halfClose
        /// Stops reading: the kernel acknowledges bytes, but nothing is answered.
        case deafen
    }

    private struct State {
        var begun: [UInt32] = []
        var requests: [Request] = []
        var resets: [UInt32] = []
        var pings: [HTTP2Frame] = []
        var pingAnswers = 0
        var bodies: [UInt32: [UInt8]] = [:]
        var orders: [Order] = []
        var isGone = false
    }

    /// Counts the server's connections from 1.
    let number: Int
    private let manners: FrameServer.Manners
    private let ledger: AcceptanceLedger
    private let waker: Waker
    private let state = Mutex(State())

    init(
        number: Int, manners: FrameServer.Manners, ledger: AcceptanceLedger, waker: Waker
    ) {
        self.number = number
        self.manners = manners
        self.ledger = ledger
        self.waker = waker
    }

    // MARK: What it has said

    /// The streams of requests of which the headers have come.
    var begun: [UInt32] { state.withLock { $0.begun } }
    /// The requests, in the order in which they were completed.
    var requests: [Request] { state.withLock { $0.requests } }
    /// The streams that the client has reset.
    var resets: [UInt32] { state.withLock { $0.resets } }
    /// The PINGs that the client has sent.
    var pings: [HTTP2Frame] { state.withLock { $0.pings } }
    var pingAnswers: Int { state.withLock { $0.pingAnswers } }
    /// Whether the connection has ended, whichever side ended it.
    var isGone: Bool { state.withLock { $0.isGone } }

    // MARK: Verbs

    func say(_ frames: HTTP2Frame...) { order(.send(frames.flatMap(\.bytes))) }

    func settings(_ values: [FrameServer.Setting: UInt32]) {
        say(HTTP2Frame(.settings, values.flatMap { [0, $0.rawValue] + HTTP2Frame.bigEndian($1) }))
    }

    /// An answer without a body: HEADERS alone.
    /// - Parameter isWhole: false leaves the stream open.
    func answer(_ status: Int, on stream: UInt32, isWhole: Bool = true) {
        accepted(status, on: stream)
        say(
            HTTP2Frame(
                .headers, flags: HTTP2Frame.endOfHeaders | (isWhole ? HTTP2Frame.endOfStream : 0),
                stream: stream, HTTP2Frame.block([(":status", String(status))])))
    }

    /// Notes an answer that the test writes frame by frame.
    func accepted(_ status: Int, on stream: UInt32) {
        guard status == 200 else { return }
        let push = state.withLock { state in
            state.requests.last { $0.stream == stream }?.push
        }
        if let push { ledger.accepted(push) }
    }

    func reset(_ stream: UInt32, code: UInt32) {
        say(HTTP2Frame(.reset, stream: stream, HTTP2Frame.bigEndian(code)))
    }

    func goAway(last: UInt32, _ data: String = "") {
        say(
            HTTP2Frame(
                .goAway, HTTP2Frame.bigEndian(last) + HTTP2Frame.bigEndian(0) + Array(data.utf8)))
    }

    func openWindow(by bytes: UInt32, stream: UInt32 = 0) {
        say(HTTP2Frame(.windowUpdate, stream: stream, HTTP2Frame.bigEndian(bytes)))
    }

    func order(_ order: Order) {
        state.withLock { $0.orders.append(order) }
        waker.wake()
    }

    // MARK: The server's thread

    var hasOrders: Bool { state.withLock { !$0.orders.isEmpty } }

    func takeOrders() -> [Order] {
        state.withLock { state in
            defer { state.orders = [] }
            return state.orders
        }
    }

    func ended() { state.withLock { $0.isGone = true } }

    func received(_ frame: HTTP2Frame) {
        if frame.kind == .headers { state.withLock { $0.begun.append(frame.stream) } }
        switch frame.kind {
        case .headers where frame.has(HTTP2Frame.endOfStream): requestEnded(frame.stream, body: [])
        case .data:
            if manners.givesBackWindow, !frame.payload.isEmpty {
                openWindow(by: UInt32(frame.payload.count))
            }
            let body = state.withLock { state in
                (state.bodies.removeValue(forKey: frame.stream) ?? []) + frame.payload
            }
            if frame.has(HTTP2Frame.endOfStream) { return requestEnded(frame.stream, body: body) }
            state.withLock { $0.bodies[frame.stream] = body }
        case .reset: state.withLock { $0.resets.append(frame.stream) }
        // Nothing may come before a server's own SETTINGS.
        case .settings where !frame.has(HTTP2Frame.acknowledgement) && manners.settings != nil:
            say(HTTP2Frame(.settings, flags: HTTP2Frame.acknowledgement))
        case .ping where frame.has(HTTP2Frame.acknowledgement):
            state.withLock { $0.pingAnswers += 1 }
        case .ping:
            state.withLock { $0.pings.append(frame) }
            say(HTTP2Frame(.ping, flags: HTTP2Frame.acknowledgement, frame.payload))
        default: break
        }
    }

    private func requestEnded(_ stream: UInt32, body: [UInt8]) {
        let request = Request(stream: stream, push: PushBody.number(in: body))
        state.withLock { $0.requests.append(request) }
        manners.serve?(self, request)
    }
}

/// How often each push has been accepted, by all connections of a server.
final class AcceptanceLedger: Sendable {
    private let counts = Mutex<[Int: Int]>([:])

    func accepted(_ push: Int) { counts.withLock { $0[push, default: 0] += 1 } }

    var acceptances: [Int: Int] { counts.withLock { $0 } }
}
