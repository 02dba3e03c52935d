// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Misbehaviour on demand. Each thread carries a command out between two events, so that it holds
/// for every connection the thread has, in the order given. `CommandLanguage` is its text.
package enum SimulatorCommand: Hashable, Sendable {
    // MARK: Connections

    /// GOAWAY on every open connection, with `{"reason":"…"}` as debug data or none. The last
    /// stream named lies `streamsBelow` streams under the highest seen: the client must take what
    /// is above it for not processed. Answers above it that waited for their delay are logged
    /// and never arrive; under `stall` nothing was decided, and nothing is logged.
    case goAway(reason: String?, streamsBelow: Int)
    /// Cuts every connection with a TCP reset.
    case resetConnections
    /// Ends every open stream with RST_STREAM and this HTTP/2 error code. Answers that waited for
    /// their delay are logged and never arrive, as with a server that dies behind its proxy.
    case resetStreams(UInt32)
    /// While true, nothing is read from any connection and nothing is written: the kernel
    /// acknowledges bytes, and nobody answers, not even PING. Ends where it had begun.
    case blackHole(Bool)
    /// A request that comes after so long without one is answered 400 IdleTimeout, and GOAWAY
    /// follows; zero switches it off. Apple documents the reason and no time.
    case idleMax(Duration)

    // MARK: Streams and answers

    /// While true, requests are read and neither answered nor logged; they stay unanswered.
    case stall(Bool)
    /// Announces another stream limit and enforces it at once, also to connections to come.
    case streamLimit(Int)
    /// Refuses the next so many streams with REFUSED_STREAM; each thread counts its own.
    case refuseStreams(Int)
    case delay(AnswerDelay)
    /// Replaces the scripted answers.
    case rules([ScriptedRule])
    /// Adds a scripted answer behind those there are.
    case addRule(ScriptedRule)

    // MARK: Provider tokens

    case providerTokenAgeMax(Duration)
    case providerTokenUpdateMin(Duration)
    case providerTokenClockSkewMax(Duration)
    /// Whether provider tokens of the key with this identifier are accepted, as they are at first.
    /// Refused with InvalidProviderToken: a key that was revoked, or that is not known yet.
    case acceptKey(String, Bool)

    // MARK: Device tokens

    /// The least time between two pushes to one token; sooner ones get 429 TooManyRequests.
    case deviceTokenGapMin(Duration)
    /// Whether a token of another topic is refused with DeviceTokenNotForTopic.
    case judgeTokenTopic(Bool)
    /// Whether a token of the other environment is refused with BadDeviceToken.
    case judgeTokenEnvironment(Bool)
    /// Tokens of other lengths are refused with BadDeviceToken.
    case deviceTokenBytes(ClosedRange<Int>)
    /// Says whose a token is, in lowercase hexadecimal; otherwise its first push does.
    case assignToken(String, topic: String, PushEnvironment)

    /// Says GOAWAY, flushes what is decided and ends the thread.
    case stop
}

/// How long answers wait between decision and sending.
package enum AnswerDelay: Hashable, Sendable {
    case fixed(Duration)
    case uniform(ClosedRange<Duration>)
    /// Never above `cap`.
    case exponential(mean: Duration, cap: Duration)

    package static let zero = AnswerDelay.fixed(.zero)
    package static func milliseconds(_ count: Int) -> AnswerDelay { .fixed(.milliseconds(count)) }
}
