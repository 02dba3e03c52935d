// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// One place for a connection of a pool, and the connection in it when there is one. It moves bytes
/// and knows its requests; what may happen when is the machine's to say.
struct PushConnection: PooledConnection, ~Copyable {
    enum Stage {
        case vacant
        case resolving
        /// TCP.
        case connecting
        /// TLS.
        case handshaking
        case established
    }

    /// What epoll knows of it, and what it reads and writes. The order matters at the end: TLS
    /// lets go before the socket closes.
    struct Link: ~Copyable {
        let socket: Socket
        var tls: TLSStream
        var session: ClientSession
        var interest: Epoll.Interest
    }

    let pool: Int
    var stage = Stage.vacant
    var machine: ConnectionMachine
    var link: Link?
    /// Starts anew with each connection, like the peer's table.
    var headers: RequestHeaders?
    /// What it connects or is connected to.
    var address: SocketAddress?
    /// The host's other addresses, which are tried when this one cannot be reached.
    var otherAddresses: ArraySlice<SocketAddress> = []
    /// When the next of them has its turn, even if this one has not failed.
    var nextAddressAt = MonotonicTime.distantFuture
    /// How the addresses before this one failed.
    var unreachable: [String] = []
    var inFlight = SlotList()
    /// Counts the connections made in this place; an answer of the resolver to an earlier one is
    /// thereby known.
    var attempt: UInt32 = 0
    var shownTokens = ShownProviderTokens()
    /// An answer has come on it by which APNs has taken the provider token.
    var isAuthenticated = false
    /// There may be more to read than one turn took.
    var hasMoreToRead = false
    /// The request before was the last one known to be with the kernel; those after it are still
    /// in `output` when the connection dies, hence were never sent.
    private(set) var flushedThrough: Int32 = 0
    private var lastSubmitted: Int32 = 0
    private var takenSinceFlush = 0
    /// TLS has taken nothing since the last write that it could not finish.
    private(set) var isBlocked = false

    /// Allocated for the first connection in this place: most places never have one.
    private var output: UnsafeMutableRawPointer!
    private var outputStart = 0
    private var outputEnd = 0

    /// A TLS record holds 16 KiB; fewer, fuller records cost fewer system calls.
    private static let recordBytes = 16_384
    /// One record that waits, and room for the largest chunk twice.
    private static let outputBytes = recordBytes + 2 * ClientSession.chunkBytesMax

    init(pool: Int, settings: PoolSettings) {
        self.pool = pool
        machine = ConnectionMachine(
            limits: settings.limits, at: MonotonicTime(nanoseconds: 0), jitter: 0)
        machine.closed()
    }

    deinit { output?.deallocate() }

    /// Everything of an earlier connection is forgotten.
    mutating func begin(limits: ConnectionLimits, at now: MonotonicTime, jitter: Double) {
        precondition(stage == .vacant && inFlight.isEmpty, "its place is taken")
        precondition(link == nil, "the connection before is still there")
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

    var isServing: Bool { machine.phase == .open }

    var capacity: Int { machine.capacity }

    var inFlightCount: Int { machine.streamsInFlight }

    func takes(bodyBytes: Int) -> Bool { machine.streamsFree > 0 }

    mutating func retire() { machine.retired() }

    /// Of the socket; there must be one.
    var descriptor: CInt {
        switch link {
        case .some(let link): link.socket.descriptor
        case .none: preconditionFailure("no socket in stage \(stage)")
        }
    }

    /// The session has ended for good, whoever ended it.
    var hasFinished: Bool {
        guard stage == .established else { return false }
        switch link {
        case .some(let link): return link.session.isFinished
        case .none: return false
        }
    }

    /// How the TCP connect ended, nil for well.
    func pendingError() -> SystemError? {
        switch link {
        case .some(let link): link.socket.pendingError()
        case .none: nil
        }
    }

    // MARK: Requests

    /// A request may be submitted: TLS takes bytes, and there is room to serialise the request.
    var hasRoom: Bool {
        !isBlocked && outputEnd &- outputStart < Self.recordBytes
    }

    /// Opens a stream and serialises its frames behind those that wait. Needs `hasRoom`.
    mutating func submit(
        _ push: UnsafePointer<WirePush>, token: UnsafeBufferPointer<UInt8>,
        authorization: Authorization, stream: UnsafeMutablePointer<ClientStream>,
        constants: borrowing RequestConstants
    ) throws(HTTP2Error) {
        assert(hasRoom, "a request is submitted where there is no room for it")
        compact()
        let block = headers!.compose(
            push, token: token, pool: pool, authorization: authorization, constants: constants)
        let room = UnsafeMutableRawBufferPointer(
            start: output + outputEnd, count: Self.outputBytes &- outputEnd)
        outputEnd &+= try link!.session.submit(block, stream: stream, into: room)
        assert(outputEnd <= Self.outputBytes, "a request runs over the end of the output")
        assert(stream.pointee.id > lastSubmitted, "streams are not numbered upwards")
        lastSubmitted = stream.pointee.id
    }

    mutating func serialise() throws(HTTP2Error) {
        let room = UnsafeMutableRawBufferPointer(
            start: output + outputEnd, count: Self.outputBytes &- outputEnd)
        outputEnd &+= try link!.session.serialise(into: room)
        assert(outputEnd <= Self.outputBytes, "frames run over the end of the output")
    }

    // MARK: Bytes

    enum Progress {
        case done
        /// The socket takes no more for now.
        case blocked
        case failed(TLSError)
    }

    /// Writes whole records; with `partly`, also what does not fill one. Adds to `bytes`.
    mutating func flush(partly: Bool, bytes: inout UInt64) throws(HTTP2Error) -> Progress {
        while true {
            let waiting = outputEnd &- outputStart
            if waiting == 0 || (!partly && waiting < Self.recordBytes) {
                guard partly, link!.session.wantsToWrite else { return .done }
                compact()
                try serialise()
                // Nothing came although it wants to: the peer's window is full. Its update will
                // be read, so there is nothing to spin for.
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
                assert(outputStart <= outputEnd, "TLS has taken more than there was")
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

    /// A request that was submitted but of which the peer can have nothing: since the output was
    /// last empty TLS has taken none of it, and a record that was cut cannot be decrypted.
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
