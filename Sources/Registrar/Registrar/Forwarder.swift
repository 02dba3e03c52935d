// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import Synchronization

/// Passes requests on to the replicas that own their keys. Each of these has a queue, threads and a
/// circuit breaker of its own, so that one that does not answer keeps no request for another waiting.
final class Forwarder: Sendable {
    struct Request: Sendable {
        var base: String
        var method: String
        /// With the query, percent-encoded.
        var target: String
        var headers: [(name: String, value: String)]
        var body: [UInt8]
        /// When nobody waits for the answer any more.
        var deadline: ContinuousClock.Instant
    }

    struct Answer: Sendable {
        var status: Int
        var body: [UInt8]
        var retryAfterSeconds: Int
        var signature: String?
    }

    private let queues = Mutex<(byBase: [String: PeerQueue], isClosed: Bool)>(([:], false))
    private let caFile: String?
    private let troubles: PeerTroubles

    /// Replicas of former addresses are forgotten where there are more.
    private static let queuesMax = 64

    init(caFile: String?, logger: Logger) {
        self.caFile = caFile
        troubles = PeerTroubles(logger)
    }

    /// Says that an answer was not to be believed.
    func disbelieve(status: Int, of base: String) {
        troubles.tell(
            base,
            "its answer (\(status)) is not signed: another token, a clock more than "
                + "\(PeerSeal.dateTolerance / .seconds(1)) s away, or somebody else")
    }

    /// The owner's answer; nil if there was none in time, or if it has answered nobody lately.
    func answer(to request: Request) async -> Answer? {
        guard let queue = queue(to: request.base) else { return nil }
        return await queue.answer(to: request)
    }

    private func queue(to base: String) -> PeerQueue? {
        queues.withLock { queues in
            if queues.isClosed { return nil }
            if let queue = queues.byBase[base] { return queue }
            if queues.byBase.count >= Self.queuesMax {
                for queue in queues.byBase.values { queue.close() }
                queues.byBase = [:]
            }
            let queue = PeerQueue(caFile: caFile, troubles)
            guard queue.start() else { return nil }
            queues.byBase[base] = queue
            return queue
        }
    }

    func close() {
        queues.withLock { queues in
            queues.isClosed = true
            for queue in queues.byBase.values { queue.close() }
        }
    }
}

/// The requests for one replica. A few threads keep connections to it open.
private final class PeerQueue: Sendable {
    private typealias Job = (
        request: Forwarder.Request, reply: CheckedContinuation<Forwarder.Answer?, Never>
    )

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
        /// Requests without an answer since the last one that had one.
        var failures = 0
        /// Until when nothing is asked; then one request tries.
        var isOpenUntil: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let wakeUps = DispatchSemaphore(value: 0)
    private let caFile: String?
    private let troubles: PeerTroubles

    private static let threads = 8
    /// Further requests are not passed on.
    private static let waitingMax = 512
    /// A write is answered within milliseconds, or when Kafka does not acknowledge it, within seconds:
    /// so many in a row that are not answered at all are no coincidence.
    private static let failuresMax = 4
    private static let openFor = Duration.seconds(1)
    private static let connectTimeMax = Duration.seconds(2)
    private static let triedTimeMin = Duration.milliseconds(100)
    private static let answerBytesMax = 4 << 20

    init(caFile: String?, _ troubles: PeerTroubles) {
        self.caFile = caFile
        self.troubles = troubles
    }

    /// - Returns: whether there are threads.
    func start() -> Bool {
        var started = 0
        for _ in 0..<Self.threads {
            if (try? NamedThread.detach(name: "ll-forward") { [self] in work() }) != nil {
                started += 1
            }
        }
        return started > 0
    }

    func answer(to request: Forwarder.Request) async -> Forwarder.Answer? {
        await withCheckedContinuation { reply in
            let isTaken = state.withLock { state in
                guard !state.isClosed, state.jobs.count < Self.waitingMax, lets(&state) else {
                    return false
                }
                state.jobs.append((request, reply))
                return true
            }
            if isTaken { wakeUps.signal() } else { reply.resume(returning: nil) }
        }
    }

    /// Whether the breaker lets a request through.
    private func lets(_ state: inout State) -> Bool {
        guard let until = state.isOpenUntil else { return true }
        guard ContinuousClock.now >= until else { return false }
        // The others wait for what becomes of this one.
        state.isOpenUntil = ContinuousClock.now + Self.openFor
        return true
    }

    private func work() {
        let conversation = HTTPConversation()
        while true {
            wakeUps.wait()
            let (job, isClosed) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isClosed)
            }
            if let job {
                let (answer, given) = perform(job.request, conversation)
                job.reply.resume(returning: answer)
                for job in given { job.reply.resume(returning: nil) }
            } else if isClosed {
                // The next thread is to end as well.
                wakeUps.signal()
                return
            }
        }
    }

    /// - Returns: what is given up, since the replica does not answer.
    private func ended(isAnswered: Bool) -> [Job] {
        state.withLock { state in
            guard !isAnswered else {
                state.failures = 0
                state.isOpenUntil = nil
                return []
            }
            state.failures += 1
            guard state.failures >= Self.failuresMax else { return [] }
            state.isOpenUntil = ContinuousClock.now + Self.openFor
            defer { state.jobs = [] }
            return state.jobs
        }
    }

    /// - Returns: the answer, and what is given up with it.
    private func perform(
        _ request: Forwarder.Request, _ conversation: HTTPConversation
    ) -> (Forwarder.Answer?, [Job]) {
        let left = request.deadline - ContinuousClock.now
        guard left > .milliseconds(1) else { return (nil, []) }
        var exchange = HTTPExchange(url: request.base + request.target)
        exchange.method = request.method
        exchange.headers = request.headers + [("expect", "")]
        exchange.body = request.body.isEmpty ? nil : request.body
        exchange.caFile = caFile
        exchange.timeout = left
        exchange.connectTimeout = min(Self.connectTimeMax, left)
        exchange.answerBytesMax = Self.answerBytesMax
        exchange.keptHeader = PeerSeal.signatureHeader
        do {
            let answer = try conversation.perform(exchange)
            let given = ended(isAnswered: true)
            return (
                Forwarder.Answer(
                    status: Int(answer.status), body: answer.body,
                    retryAfterSeconds: Int(answer.retryAfter.components.seconds),
                    signature: answer.header), given
            )
        } catch {
            // One that had little time left says nothing of the replica.
            guard left >= Self.triedTimeMin else { return (nil, []) }
            troubles.tell(request.base, "\(error)")
            return (nil, ended(isAnswered: false))
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeUps.signal()
    }
}

/// Tells of replicas that do not answer what is passed on to them, of each once a minute.
private final class PeerTroubles: Sendable {
    private let logger: Logger
    private let toldAt = Mutex<[String: ContinuousClock.Instant]>([:])

    private static let interval = Duration.seconds(60)

    init(_ logger: Logger) { self.logger = logger }

    func tell(_ base: String, _ cause: String) {
        let now = ContinuousClock.now
        let isDue = toldAt.withLock { toldAt in
            toldAt = toldAt.filter { now - $0.value < Self.interval }
            guard toldAt[base] == nil else { return false }
            toldAt[base] = now
            return true
        }
        guard isDue else { return }
        logger.warning(
            "another registrar does not answer what is passed on to it",
            metadata: ["url": "\(base)", "cause": "\(cause)"])
    }
}
