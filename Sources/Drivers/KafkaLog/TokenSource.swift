// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Glibc
internal import LinuxIO
internal import PushModel
internal import Rdkafka
internal import Synchronization

/// The bearer tokens of all Kafka clients made from the same settings, which share each token.
/// While a client waits for one, a thread requests it, with retries. It retries after a refusal
/// too, since a rotated secret changes on one side before the other.
final class TokenSource: Sendable {
    private struct State {
        var held: HeldToken?
        /// Why the last request failed; nil after a success and before the first request.
        var failure: TokenFailure?
        /// The clients that wait for a token, each at most once.
        var waiting: [TokenRecipient] = []
        var isServed = false
    }

    private let endpoint: TokenEndpoint
    private let state = Mutex(State())
    /// Locked during a request to the endpoint, so that concurrent callers use its answer.
    private let turn = Mutex(())

    init(_ settings: OIDCSettings) { endpoint = TokenEndpoint(settings) }

    /// The waits between requests. The first is short, since without a token a worker reads
    /// nothing; later ones are long, to spare an endpoint in trouble and not to be locked out by
    /// one that counts refusals.
    private static let backoff = Backoff(least: .seconds(1), most: .seconds(60))

    /// Why the last request for a token failed; nil if it did not.
    var failure: TokenFailure? { state.withLock { $0.failure } }

    /// The current token if more than half of its lifetime is left, otherwise a new one. Blocks for
    /// at most two requests: one under way for another caller, and its own.
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

    /// Requests the next token for a client, which gets it later, from another thread.
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

    /// Requests tokens until no client waits.
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
                precondition(state.isServed, "only one thread at a time serves requests for tokens")
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
                // The token expired before it was set. The client asks again after ten seconds.
                recipient.takeFailure(error.message)
            }
        }
    }

    /// Tells the waiting clients of a failure; they keep waiting unless they have ended. This is
    /// done outside the lock: releasing the last reference to a client ends it, and that waits for
    /// a thread that may be calling `refresh`.
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
    /// When the token was received, in milliseconds since 1970.
    let receivedAt: Int64

    /// Whether more than half of the token's lifetime is left. The clients of a process ask within
    /// moments of each other, after four fifths of the last token's lifetime, so all but the first
    /// find a fresh one.
    func isFresh(at now: Int64) -> Bool {
        let life = token.expiresAtMilliseconds - receivedAt
        return now >= receivedAt && token.expiresAtMilliseconds - now > life / 2
    }
}
