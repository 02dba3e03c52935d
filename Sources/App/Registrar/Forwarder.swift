// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import HTTPListener
internal import LinuxIO
internal import Synchronization

/// Passes requests on to the replicas that own their keys, with what the caller has sent, so that the
/// owner checks the caller itself. A few threads keep connections to the other replicas open.
final class Forwarder: Sendable {
    struct Request: Sendable {
        var base: String
        var method: String
        /// With the query, percent-encoded.
        var target: String
        var headers: [(name: String, value: String)]
        var body: [UInt8]
    }

    struct Answer: Sendable {
        var status: Int
        var body: [UInt8]
        var retryAfterSeconds: Int
    }

    private typealias Job = (request: Request, reply: CheckedContinuation<Answer?, Never>)

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let wakeUps = DispatchSemaphore(value: 0)
    private let caFile: String?
    private let timeout: Duration

    private static let threads = 16
    /// Further requests are not passed on.
    static let waitingMax = 10_000
    private static let answerBytesMax = 4 << 20

    init(caFile: String?, timeout: Duration) {
        self.caFile = caFile
        self.timeout = timeout
    }

    func start() throws {
        for _ in 0..<Self.threads {
            try NamedThread.detach(name: "ll-forward") { [self] in work() }
        }
    }

    /// The owner's answer; nil if there was none.
    func answer(to request: Request) async -> Answer? {
        await withCheckedContinuation { reply in
            let isTaken = state.withLock { state in
                guard !state.isClosed, state.jobs.count < Self.waitingMax else { return false }
                state.jobs.append((request, reply))
                return true
            }
            if isTaken { wakeUps.signal() } else { reply.resume(returning: nil) }
        }
    }

    private func work() {
        let conversation = HTTPConversation()
        while true {
            wakeUps.wait()
            let (job, isClosed) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isClosed)
            }
            if let job {
                job.reply.resume(returning: perform(job.request, conversation))
            } else if isClosed {
                // The next thread is to end as well.
                wakeUps.signal()
                return
            }
        }
    }

    private func perform(_ request: Request, _ conversation: HTTPConversation) -> Answer? {
        var exchange = HTTPExchange(url: request.base + request.target)
        exchange.method = request.method
        exchange.headers = request.headers + [("expect", "")]
        exchange.body = request.body.isEmpty ? nil : request.body
        exchange.caFile = caFile
        exchange.timeout = timeout
        exchange.connectTimeout = .seconds(2)
        exchange.answerBytesMax = Self.answerBytesMax
        guard let answer = try? conversation.perform(exchange) else { return nil }
        return Answer(
            status: Int(answer.status), body: answer.body,
            retryAfterSeconds: Int(answer.retryAfter.components.seconds))
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeUps.signal()
    }
}
