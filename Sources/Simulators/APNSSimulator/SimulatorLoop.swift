// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Logging
internal import Nghttp2
internal import PushModel

/// One serving thread: its connections, its answer log, its mailbox. It never leaves the thread
/// that made it.
final class SimulatorLoop {
    let shared: SimulatorShared
    let turn: ServingTurn
    let judge: RequestJudge
    var connections: [UInt64: SimulatorConnection] = [:]
    var delayed = DelayedAnswers()
    private(set) var isStopping = false

    private let mailbox: SimulatorMailbox
    private let epoll: Epoll
    var log: AnswerLog?
    var headers = AnswerHeaders()
    /// The buffer for one TLS record.
    private var input = [UInt8](repeating: 0, count: 16_384)
    /// The connections that have more to read than one turn allows.
    private var unfinished: Set<UInt64> = []
    private var flushAt: Int64 = 0

    /// The sockets to accept from; only the first thread has any.
    private let listeners: [ListeningSocket]
    private let peers: [SimulatorMailbox]
    private var nextPeer = 0
    /// When to accept again after a failure, in monotonic nanoseconds.
    private var acceptAgainAt: Int64?

    private static let wakerTag = UInt64.max
    /// The tags of listeners count down from here; those of connections count up from 1.
    private static let listenerTag = UInt64.max - 1
    /// The most records read from a connection in a turn: 256 KiB, about twice what a thousand open
    /// requests fill.
    private static let recordsPerTurn = 16
    /// The longest that a log line is buffered: 100 ms, which readers of the log rely on.
    private static let flushEvery: Int64 = 100_000_000
    /// The longest from accept to the end of the TLS handshake: 10 s.
    private static let handshakeMax: Int64 = 10_000_000_000
    /// The pause after a failed accept: 100 ms, since descriptors become free only as connections
    /// end.
    private static let acceptPause: Int64 = 100_000_000

    /// - Parameter peers: the mailboxes of all threads, this one's first; connections are dealt out
    ///   to them.
    init(
        shared: SimulatorShared, mailbox: SimulatorMailbox, listeners: [ListeningSocket],
        peers: [SimulatorMailbox]
    ) throws {
        precondition(
            peers.contains { $0 === mailbox }, "a thread is among those that are dealt connections")
        self.shared = shared
        self.mailbox = mailbox
        self.listeners = listeners
        self.peers = peers
        if let path = shared.options.logPath {
            log = try AnswerLog(path: path, logger: shared.logger)
        }
        turn = ServingTurn(options: shared.options, counters: shared.counters)
        turn.now = SystemClock.monotonicNanoseconds()
        judge = RequestJudge(shared: shared, now: turn.now)
        epoll = try Epoll(eventsMax: 256)
        try epoll.add(mailbox.waker.descriptor, for: .read, tag: Self.wakerTag)
        for (index, listener) in listeners.enumerated() {
            try epoll.add(
                listener.socket.descriptor, for: .read, tag: Self.listenerTag - UInt64(index))
        }
    }

    func run() {
        while !isStopping {
            mailbox.waker.prepareToSleep()
            let timeout = mailbox.isEmpty ? sleepMax() : .zero
            let count = epoll.wait(timeout: timeout)
            mailbox.waker.awake()
            turn.wallSeconds = SystemClock.wallNanoseconds() / 1_000_000_000
            turn.now = SystemClock.monotonicNanoseconds()
            let messages = mailbox.take()
            for message in messages { obey(message) }
            mailbox.haveObeyed(messages.count)
            if !turn.isBlackHole {
                let resumed = unfinished
                unfinished.removeAll(keepingCapacity: true)
                for tag in resumed { serve(tag, readable: true) }
            }
            for index in 0..<count { handle(epoll.event(index)) }
            endTurn()
        }
        stopServing()
    }

    private func handle(_ event: Epoll.Event) {
        if event.tag == Self.wakerTag { return }
        if event.tag > Self.listenerTag - UInt64(listeners.count) {
            return accept(from: listeners[Int(Self.listenerTag - event.tag)])
        }
        if turn.isBlackHole { return vanished(event.tag) }
        serve(event.tag, readable: event.isReadable)
    }

    /// Handles an event during a black hole, when a descriptor is watched for nothing: it reports
    /// the end of the connection, or was reported before.
    private func vanished(_ tag: UInt64) {
        guard let connection = connections[tag], connection.hasFailed else { return }
        drop(connection)
    }

    private func sleepMax() -> Duration? {
        if !unfinished.isEmpty && !turn.isBlackHole { return .zero }
        let now = SystemClock.monotonicNanoseconds()
        var until: Int64 = .max
        if let due = delayed.nextDue, !turn.isBlackHole { until = min(until, due) }
        if let acceptAgainAt { until = min(until, acceptAgainAt) }
        if log?.isEmpty == false { until = min(until, flushAt) }
        // A client may be stuck in its handshake, so time-outs are checked every second.
        if !connections.isEmpty { until = min(until, now + 1_000_000_000) }
        return until == .max ? nil : .nanoseconds(max(0, until - now))
    }

    private func endTurn() {
        let now = SystemClock.monotonicNanoseconds()
        if !turn.isBlackHole { sendDelayed(until: now) }
        if let at = acceptAgainAt, now >= at {
            acceptAgainAt = nil
            listen(for: .read)
        }
        if now >= flushAt {
            log?.flush()
            flushAt = now + Self.flushEvery
            for connection in connections.values
            where connection.state == .handshaking && !turn.isBlackHole
                && now - connection.acceptedAt > Self.handshakeMax
            {
                connection.reset()
                drop(connection)
            }
        }
        turn.publishCounts()
    }

    // MARK: Connections

    private func accept(from listener: ListeningSocket) {
        while true {
            do throws(SystemError) {
                guard let socket = try listener.socket.accept() else { return }
                let number = shared.counters.connectionAccepted(
                    connectionsMax: shared.options.connectionsMax)
                // The socket closes as it goes out of scope.
                guard let number else { continue }
                let accepted = try AcceptedSocket(
                    socket, number: number, environment: listener.environment)
                peers[nextPeer].post(.adopt(accepted))
                nextPeer = (nextPeer + 1) % peers.count
            } catch {
                // Usually the process is out of descriptors; clients wait in the backlog.
                shared.logger.warning("cannot accept connections", metadata: ["error": "\(error)"])
                listen(for: [])
                acceptAgainAt = SystemClock.monotonicNanoseconds() + Self.acceptPause
                return
            }
        }
    }

    private func listen(for interest: Epoll.Interest) {
        for (index, listener) in listeners.enumerated() {
            // This fails only for a descriptor that is not in the set, and these are.
            try? epoll.modify(
                listener.socket.descriptor, for: interest,
                tag: Self.listenerTag - UInt64(index))
        }
    }

    private func adopt(_ accepted: AcceptedSocket) {
        let credential = ConnectionCredential(
            registry: shared.registry, environment: accepted.environment)
        // A connection has one stream until a provider token is valid.
        let openRequests = OpenRequests(
            streamLimit: min(1, turn.streamLimit), credential: credential, judge: judge,
            turn: turn, keepsHeaders: shared.recorder.isOn)
        let connection = SimulatorConnection(
            accepted, context: shared.context, openRequests: openRequests,
            now: SystemClock.monotonicNanoseconds())
        do throws(SystemError) {
            try epoll.add(accepted.socket.descriptor, for: .read, tag: connection.tag)
            precondition(
                connections[connection.tag] == nil, "each connection has a number of its own")
            connections[connection.tag] = connection
            updateInterest(connection)
        } catch {
            shared.counters.connectionClosed()
            shared.logger.warning("cannot serve a connection", metadata: ["error": "\(error)"])
        }
    }

    private func serve(_ tag: UInt64, readable: Bool) {
        guard let connection = connections[tag] else { return }
        // The read that ended the handshake may have read part of the first request.
        let isNew = connection.state == .handshaking
        if connection.shakeHands() {
            if readable || isNew { read(connection) }
            connection.write()
        }
        updateInterest(connection)
    }

    private func read(_ connection: SimulatorConnection) {
        for _ in 0..<Self.recordsPerTurn {
            let reading = connection.readRecord(into: &input)
            answerEnded(of: connection)
            guard case .more = reading else { return }
        }
        unfinished.insert(connection.tag)
    }

    /// Drops a connection that has ended; otherwise makes epoll watch for what it waits for.
    func updateInterest(_ connection: SimulatorConnection) {
        if connection.isDead { return drop(connection) }
        let interest: Epoll.Interest =
            turn.isBlackHole ? [] : connection.wantsWritable ? [.read, .write] : .read
        guard interest != connection.interest else { return }
        do throws(SystemError) {
            try epoll.modify(
                connection.accepted.socket.descriptor, for: interest, tag: connection.tag)
            connection.interest = interest
        } catch {
            connection.reset()
            drop(connection)
        }
    }

    func drop(_ connection: SimulatorConnection) {
        guard connections.removeValue(forKey: connection.tag) != nil else { return }
        unfinished.remove(connection.tag)
        // This fails only for a descriptor that is not in the set, and this one is.
        try? epoll.remove(connection.accepted.socket.descriptor)
        shared.counters.connectionClosed()
    }

    private func obey(_ message: SimulatorMailbox.Message) {
        switch message {
        case .adopt(let accepted): adopt(accepted)
        case .command(.stop): isStopping = true
        case .command(let command): carryOut(command)
        }
    }

    private func stopServing() {
        sendDelayed(until: .max)
        for connection in connections.values {
            connection.goAway(lastStream: connection.session.lastStream, debugData: [])
            connection.write()
            if !connection.isDead { connection.close() }
            drop(connection)
        }
        log?.flush()
        turn.publishCounts()
    }
}
