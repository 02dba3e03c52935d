// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Glibc
internal import LinuxIO
internal import PushModel
internal import Rdkafka
internal import Synchronization

/// The bearer tokens of all Kafka clients that were made from the same settings: the endpoint is
/// asked once for all of them. While a client waits for one, a thread asks, again and again where
/// that fails; a refusal ends nothing, since whoever rotates a secret does it on both sides in turn.
final class TokenSource: Sendable {
    private struct State {
        var held: HeldToken?
        /// Of the last request; nil after a success and before the first.
        var failure: TokenFailure?
        /// Each client at most once.
        var waiting: [TokenRecipient] = []
        var isServed = false
    }

    private let endpoint: TokenEndpoint
    private let state = Mutex(State())
    /// Locked while the endpoint is asked, so that those who come meanwhile find its answer.
    private let turn = Mutex(())

    init(_ settings: OIDCSettings) { endpoint = TokenEndpoint(settings) }

    /// At first soon, since without a token a worker reads nothing; then seldom, to spare an endpoint
    /// that is in trouble, and a client's record at one that counts refusals.
    private static let backoff = Backoff(least: .seconds(1), most: .seconds(60))

    /// Why the last request for a token failed; nil when it did not.
    var failure: TokenFailure? { state.withLock { $0.failure } }

    /// The token that is held where it has half of its life before it, else a new one. Blocks, at
    /// most for two requests: another's that is under way, and its own.
    @discardableResult
    func token() throws(TokenFailure) -> BearerToken {
        try turn.withLock { _ throws(TokenFailure) -> BearerToken in
            if let held = state.withLock({ $0.held }), held.isFresh(at: Self.now()) {
                return held.token
            }
            do throws(TokenFailure) {
                let token = try endpoint.token(now: Self.now)
                state.withLock { state in
                    state.held = HeldToken(token: token, receivedAt: Self.now())
                    state.failure = nil
                }
                return token
            } catch {
                state.withLock { $0.failure = error }
                throw error
            }
        }
    }

    // MARK: Clients

    /// Gives a client its next token, later and from another thread.
    func refresh(_ recipient: TokenRecipient) throws(SystemError) {
        let isFirst = state.withLock { state in
            state.waiting.removeAll { $0.isSame(as: recipient) }
            state.waiting.append(recipient)
            defer { state.isServed = true }
            return !state.isServed
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try NamedThread.detach(name: "kafka-token") { self.serve() }
        } catch {
            state.withLock { $0.isServed = false }
            throw error
        }
    }

    /// Until nobody waits any more.
    private func serve() {
        var random = SplitMix64(seed: UInt64.random(in: .min ... .max))
        var failures = 0
        while true {
            do throws(TokenFailure) {
                deliver(try token())
                failures = 0
            } catch {
                deliver(error)
                failures += 1
            }
            let isDone = state.withLock { state in
                precondition(state.isServed, "two threads ask for tokens")
                state.isServed = !state.waiting.isEmpty
                return !state.isServed
            }
            if isDone { return }
            if failures > 0 {
                let delay = Self.backoff.delay(attempt: failures - 1, random: &random)
                usleep(UInt32(delay / .microseconds(1)))
            }
        }
    }

    private func deliver(_ token: BearerToken) {
        let recipients = state.withLock { state in
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for recipient in recipients {
            do throws(RdkafkaError) {
                try recipient.take(token)
            } catch {
                // It expired on the way here. The client asks again in ten seconds.
                recipient.takeFailure(error.message)
            }
        }
    }

    /// They go on waiting, unless they are gone. Not inside the lock: whoever holds a client last
    /// ends it, and that waits for a thread which may be calling `refresh`.
    private func deliver(_ failure: TokenFailure) {
        let gone = state.withLock { $0.waiting }.filter { !$0.takeFailure(failure.description) }
        state.withLock { state in
            state.waiting.removeAll { recipient in gone.contains { $0.isSame(as: recipient) } }
        }
    }

    private static func now() -> Int64 { SystemClock.wallNanoseconds() / 1_000_000 }
}

private struct HeldToken: Sendable {
    let token: BearerToken
    /// Milliseconds since 1970.
    let receivedAt: Int64

    /// The clients of a process come for a token within moments of each other, when four fifths of
    /// the last one's life are over; those that follow the first find one that is new.
    func isFresh(at now: Int64) -> Bool {
        let life = token.expiresAtMilliseconds - receivedAt
        return now >= receivedAt && token.expiresAtMilliseconds - now > life / 2
    }
}
