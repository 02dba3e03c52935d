// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// A connection of a pool, or room for one. It moves bytes
/// and knows its requests; `machine` decides what may happen when.
struct PushConnection: PooledConnection, ~Copyable {
    enum Stage {
        case vacant
        case resolving
        /// The TCP connect is under way.
        case connecting
        /// The TLS handshake is under way.
        case handshaking
        case established
    }

    /// The socket of a connection and the layers on it. `interest` is what epoll watches. The order
    /// of the fields matters at the end: TLS is freed before the socket closes.
    struct Link: ~Copyable {
        let socket: Socket
        var tls: TLSStream
        var session: ClientSession
        var interest: Epoll.Interest
    }

    let pool: Int
    var health = ConnectionHealth()
    var stage = Stage.vacant
    var machine: ConnectionMachine
    var link: Link?
    /// The HPACK encoder of this connection; each connection starts with an empty table, as the
    /// peer does.
    var headers: RequestHeaders?
    /// The address of the current connection or connect.
    var address: SocketAddress?
    /// The host's other addresses, tried if this one cannot be reached.
    var otherAddresses: ArraySlice<SocketAddress> = []
    /// When the next address is tried, even if this one has not failed.
    var nextAddressAt = MonotonicTime.distantFuture
    /// How the addresses before this one failed, for the log.
    var unreachable: [String] = []
    var inFlight = SlotList()
    /// Counts the connections here, so that a resolver's answer to an earlier one is
    /// recognised.
    var attempt: UInt32 = 0
    var shownTokens = ShownProviderTokens()
    /// Whether APNs has accepted the provider token in an answer on this connection.
    var isAuthenticated = false
    /// Whether more may be left to read than one turn took.
    var hasMoreToRead = false
    /// The stream ID of the last request that the kernel is known to have taken. Later requests may
    /// still be in `output` when the connection dies; see `wasNeverSent`.
    private(set) var flushedThrough: Int32 = 0
    private var lastSubmitted: Int32 = 0
    private var takenSinceFlush = 0
    /// Whether the last write ended because the socket took no more.
    private(set) var isBlocked = false

    /// The output buffer, allocated for the first connection here: most entries never have
    /// one.
    private var output: UnsafeMutableRawPointer!
    private var outputStart = 0
    private var outputEnd = 0

    /// A TLS record holds 16 KiB; fewer, fuller records cost fewer system calls.
    private static let recordBytes = 16_384
    /// One waiting record, and room for two of the largest chunks.
    private static let outputBytes = recordBytes + 2 * ClientSession.chunkBytesMax

    init(pool: Int, settings: PoolSettings) {
        self.pool = pool
        machine = ConnectionMachine(
            limits: settings.limits, at: MonotonicTime(nanoseconds: 0), jitter: 0)
        machine.closed()
    }

    deinit { output?.deallocate() }

    /// Prepares it for a new connection and discards the state of the previous one.
    mutating func begin(limits: ConnectionLimits, at now: MonotonicTime, jitter: Double) {
        precondition(
            stage == .vacant && inFlight.isEmpty,
            "a connection begins in a vacant place without pushes in flight")
        precondition(link == nil, "a connection begins only when the one before has gone")
        machine = ConnectionMachine(limits: limits, at: now, jitter: jitter)
        output = output ?? .allocate(byteCount: Self.outputBytes, alignment: 64)
        stage = .resolving
        attempt &+= 1
        otherAddresses = []
        unreachable = []
        shownTokens = ShownProviderTokens()
        isAuthenticated = false
        hasMoreToRead = false
        flushedThrough = 0
        lastSubmitted = 0
        takenSinceFlush = 0
        isBlocked = false
        outputStart = 0
        outputEnd = 0
    }

    var isVacant: Bool { stage == .vacant }

    var isWanted: Bool { machine.isWanted }

    var isServing: Bool { machine.phase == .open }

    var capacity: Int { machine.capacity }

    var inFlightCount: Int { machine.streamsInFlight }

    func takes(bodyBytes: Int, isKeptBack: Bool) -> Bool { streamsFree(isKeptBack) > 0 }

    /// How many streams may be opened now.
    /// - Parameter isKeptBack: whether for pushes that leave free what is kept for prompt ones.
    func streamsFree(_ isKeptBack: Bool) -> Int {
        isKeptBack ? machine.streamsFree &- machine.streamsKept : machine.streamsFree
    }

    mutating func retire() { machine.retired() }

    /// The descriptor of the socket, which must exist.
    var descriptor: CInt {
        switch link {
        case .some(let link): link.socket.descriptor
        case .none:
            preconditionFailure(
                "a connection has no socket in stage \(stage), so none is asked for")
        }
    }

    /// Whether the session has ended for good, whichever side ended it.
    var hasFinished: Bool {
        guard stage == .established else { return false }
        switch link {
        case .some(let link): return link.session.isFinished
        case .none: return false
        }
    }

    /// The error of the TCP connect; nil if it succeeded.
    func pendingError() -> SystemError? {
        switch link {
        case .some(let link): link.socket.pendingError()
        case .none: nil
        }
    }

    // MARK: Requests

    /// Whether a request may be submitted: TLS takes bytes, and there is room to serialise the
    /// request.
    var hasRoom: Bool {
        !isBlocked && outputEnd &- outputStart < Self.recordBytes
    }

    /// Opens a stream and serialises its frames behind those that wait. The caller must check
    /// `hasRoom`.
    mutating func submit(
        _ push: UnsafePointer<WirePush>, token: UnsafeBufferPointer<UInt8>,
        authorization: Authorization, stream: UnsafeMutablePointer<ClientStream>,
        constants: borrowing RequestConstants
    ) throws(HTTP2Error) {
        assert(hasRoom, "a request is submitted only where there is room for it")
        compact()
        let block = headers!.compose(
            push, token: token, pool: pool, authorization: authorization, constants: constants)
        let room = UnsafeMutableRawBufferPointer(
            start: output + outputEnd, count: Self.outputBytes &- outputEnd)
        outputEnd &+= try link!.session.submit(block, stream: stream, into: room)
        assert(outputEnd <= Self.outputBytes, "a request ends within the output")
        assert(
            stream.pointee.id > lastSubmitted, "the streams of a connection have growing numbers")
        lastSubmitted = stream.pointee.id
    }

    mutating func serialise() throws(HTTP2Error) {
        let room = UnsafeMutableRawBufferPointer(
            start: output + outputEnd, count: Self.outputBytes &- outputEnd)
        outputEnd &+= try link!.session.serialise(into: room)
        assert(outputEnd <= Self.outputBytes, "frames end within the output")
    }

    // MARK: Bytes

    enum Progress {
        case done
        /// The socket takes no more bytes for now.
        case blocked
        case failed(TLSError)
    }

    /// Writes full TLS records and, if `partly`, the rest that does not fill one. Adds the number
    /// of bytes written to `bytes`.
    mutating func flush(partly: Bool, bytes: inout UInt64) throws(HTTP2Error) -> Progress {
        while true {
            let waiting = outputEnd &- outputStart
            if waiting == 0 || (!partly && waiting < Self.recordBytes) {
                guard partly, link!.session.wantsToWrite else { return .done }
                compact()
                try serialise()
                // The session wants to write but produced nothing: the peer's window is full.
                // Trying again before a WINDOW_UPDATE arrives would spin.
                if outputEnd == outputStart { return .done }
                continue
            }
            let record = UnsafeRawBufferPointer(
                start: output + outputStart, count: min(waiting, Self.recordBytes))
            switch link!.tls.write(record) {
            case .bytes(let count):
                isBlocked = false
                bytes &+= UInt64(count)
                outputStart &+= count
                assert(outputStart <= outputEnd, "TLS takes no more bytes than there are")
                takenSinceFlush &+= count
                if outputStart == outputEnd {
                    flushedThrough = lastSubmitted
                    takenSinceFlush = 0
                }
                compact()
            case .wantsRead, .wantsWrite:
                isBlocked = true
                return .blocked
            case .closed: return .failed(TLSError(text: "the peer has closed"))
            case .failed(let error): return .failed(error)
            }
        }
    }

    /// Whether the peer can have nothing of a submitted request: it was submitted after the output
    /// was last empty, and TLS has finished no record since. A record sent in part cannot be
    /// decrypted.
    func wasNeverSent(_ stream: UnsafePointer<ClientStream>) -> Bool {
        takenSinceFlush == 0 && stream.pointee.id > flushedThrough
    }

    private mutating func compact() {
        guard outputStart > 0 else { return }
        let count = outputEnd &- outputStart
        if count > 0 { output.copyMemory(from: output + outputStart, byteCount: count) }
        outputStart = 0
        outputEnd = count
    }
}
