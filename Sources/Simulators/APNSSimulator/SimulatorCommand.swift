// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A command that makes the simulator misbehave. Each thread carries it out between two events, so
/// it applies to all its connections, in the order given. `CommandLanguage` parses the text form.
package enum SimulatorCommand: Hashable, Sendable {
    // MARK: Connections

    /// Sends GOAWAY on every open connection, with `{"reason":"…"}` as debug data or none. The last
    /// stream that it names is `streamsBelow` streams below the highest one seen: the client must
    /// take higher ones as not processed. Delayed answers on those are logged but never sent; under
    /// `stall` nothing was decided, and nothing is logged.
    case goAway(reason: String?, streamsBelow: Int)
    /// Cuts every connection with a TCP reset.
    case resetConnections
    /// Ends every open stream with RST_STREAM and this HTTP/2 error code. Delayed answers are
    /// logged but never sent, as if a server died behind its proxy.
    case resetStreams(UInt32)
    /// While true, nothing is read from or written to any connection: the kernel acknowledges
    /// bytes, but nothing is answered, not even PING. Afterwards connections go on where they
    /// stopped.
    case blackHole(Bool)
    /// Answers a request after this long without one with 400 IdleTimeout, followed by GOAWAY; zero
    /// switches it off. Apple documents the reason but no time.
    case idleMax(Duration)

    // MARK: Streams and answers

    /// While true, requests are read but neither answered nor logged. They are not answered later
    /// either.
    case stall(Bool)
    /// Announces another stream limit and enforces it at once, for future connections too.
    case streamLimit(Int)
    /// Refuses this number of streams with REFUSED_STREAM; each thread counts its own.
    case refuseStreams(Int)
    case delay(AnswerDelay)
    /// Replaces the scripted answers.
    case rules([ScriptedRule])
    /// Adds a scripted answer after the existing ones.
    case addRule(ScriptedRule)

    // MARK: Provider tokens

    case providerTokenAgeMax(Duration)
    case providerTokenUpdateMin(Duration)
    case providerTokenClockSkewMax(Duration)
    /// Sets whether provider tokens of the key with this identifier are accepted, as they are
    /// initially. Otherwise they are refused with InvalidProviderToken, as for a key that was
    /// revoked or is not known yet.
    case acceptKey(String, Bool)

    // MARK: Device tokens

    /// The least time between two pushes to one device token; earlier ones get 429 TooManyRequests.
    case deviceTokenGapMin(Duration)
    /// Whether a token of another topic is refused with DeviceTokenNotForTopic.
    case judgeTokenTopic(Bool)
    /// Whether a token of the other environment is refused with BadDeviceToken.
    case judgeTokenEnvironment(Bool)
    /// Tokens of other lengths are refused with BadDeviceToken.
    case deviceTokenBytes(ClosedRange<Int>)
    /// Assigns a device token, in lower-case hexadecimal, to a topic and an environment. Otherwise
    /// its first push does.
    case assignToken(String, topic: String, PushEnvironment)

    /// Sends GOAWAY, flushes the answers that are decided, and ends the thread.
    case stop
}

/// The delay between deciding and sending an answer.
package enum AnswerDelay: Hashable, Sendable {
    case fixed(Duration)
    case uniform(ClosedRange<Duration>)
    /// An exponential distribution, cut at `cap`.
    case exponential(mean: Duration, cap: Duration)

    package static let zero = AnswerDelay.fixed(.zero)
    package static func milliseconds(_ count: Int) -> AnswerDelay { .fixed(.milliseconds(count)) }
}
