// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery

extension Configuration {
    package struct Delivery: Sendable {
        package var threads = 1
        package var attemptsMax = 10
        package var queuedMax = 65_536
        package var queuedBytesMax = 64 << 20
        package var holdMax: Duration = .seconds(10)
        package var deferredMax = 1_000_000
        /// The waits of a push after 5xx answers.
        package var backoff = Backoff(least: .seconds(1), most: .seconds(900))
        /// The waits of a device token after `TooManyRequests`.
        package var cooldown = Backoff(least: .seconds(10), most: .seconds(900))
        package var tokenGuard = TokenGuard.Limits()
        package var shutdownTimeout: Duration = .seconds(25)
        /// The share of the accepted pushes that `kafka.topics.outcomes` tells of.
        package var outcomeSample = 0.01
        package var mode = Mode.send
        /// The file of what a shadow would have sent; nil for none.
        package var shadowLog: String?
        package var shadowLogBytesMax = 1 << 30
    }
}

extension Configuration.Delivery {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "threads", \.threads, .integer(1...64),
                "Threads that own connections; more only where one is busy all the time."),
            .value(
                "attemptsMax", \.attemptsMax, .integer(1...100),
                "After so many attempts a push becomes a dead letter, even if its last answer "
                    + "allows another."
            ).live,
            .section(
                "guard", \.tokenGuard, TokenGuard.Limits.keys,
                "When an answer is believed of a token."),
            .value(
                "outcomeSample", \.outcomeSample, .fraction(0...1),
                "The share of accepted pushes that are written to `kafka.topics.outcomes`, beside all "
                    + "that have failed. The `apns-id` decides which, so that all workers choose alike."
            ).live,
        ] + bounds + waits + shadowKeys
    }

    private static var bounds: [ConfigurationKey<Self>] {
        [
            .value(
                "queuedMax", \.queuedMax, .integer(1000...10_000_000),
                "Pushes in memory at once, those in flight included; their memory is taken at "
                    + "start."),
            .value(
                "queuedBytesMax", \.queuedBytesMax, .bytes(1 << 20...16 << 30),
                "The most bytes of the payloads of these pushes, and as many again for deferred "
                    + "pushes."),
            .value(
                "deferredMax", \.deferredMax, .integer(1000...100_000_000),
                "Deferred pushes that one worker keeps in memory, some 400 bytes each; above it "
                    + "what may not be sent, else the largest backlog, is left in Kafka and read "
                    + "again later."
            ).live,
        ]
    }

    private static var waits: [ConfigurationKey<Self>] {
        [
            .value(
                "holdMax", \.holdMax, .duration(.seconds(2) ... .seconds(300)),
                "A push that has to wait longer goes to the deferred topic, so that its event's "
                    + "offset can be committed: after a crash, events of at most this time are "
                    + "read again."),
            .value(
                "backoffMin", \.backoff.least, .duration(.milliseconds(100) ... .seconds(300)),
                "The wait after a first 5xx answer; each further one doubles it, with jitter."
            ).live,
            .value(
                "backoffMax", \.backoff.most, .duration(.seconds(1) ... .seconds(3600)),
                "The longest such wait. Apple asks for 15 minutes."
            ).live,
            .value(
                "cooldownMin", \.cooldown.least, .duration(.seconds(1) ... .seconds(300)),
                "The wait of a token after a first `TooManyRequests`; each further one doubles "
                    + "it, with jitter. Apple gives no number."
            ).live,
            .value(
                "cooldownMax", \.cooldown.most, .duration(.seconds(1) ... .seconds(3600)),
                "The longest such wait."
            ).live,
            .value(
                "shutdownTimeout", \.shutdownTimeout, .duration(.seconds(1) ... .seconds(600)),
                "The longest time from SIGTERM to exit. Keep it below Kubernetes's grace period of "
                    + "30s, and not below 7s: after a stop that is cut off the last events are sent "
                    + "again."
            ).live,
        ]
    }
}

extension TokenGuard.Limits {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "window", \.window, .integer(10...10_000),
                "The number of last answers of a route that are judged; until there are as many, "
                    + "no 400 becomes a suppression."
            ).live,
            .value(
                "badShareMax", \.badShareMax, .fraction(0...1),
                "A 400 becomes a suppression only while at most this share of those answers are "
                    + "400s."
            ).live,
            .value(
                "suppressionsPerMinuteMax", \.suppressionsPerMinuteMax, .integer(1...1_000_000),
                "More suppressions than this in a minute are not written for one route; such a token "
                    + "is not suppressed until APNs answers another push to it."
            ).live,
        ]
    }
}
