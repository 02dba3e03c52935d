// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What the age of a provider token means that another service has signed, so that this process
/// cannot renew it. The age is the time since the token's `iat`, by the wall clock.
package enum ReadyTokenAge: Hashable, Sendable {
    /// Its `iat` is ahead of this machine's clock: one of the two clocks is wrong.
    case future
    /// APNs wants 20 minutes between two tokens, so it is not replaced yet.
    case young
    case good
    /// The service should have renewed it by now.
    case late
    /// APNs refuses it, so it is not sent any more.
    case over

    /// 59 min: APNs rejects a token older than 60, and one on its way must not grow that old.
    package static let usableFor = Duration.seconds(59 * 60)
    /// 50 min: a service that renews after 45, as a worker does, has had five more.
    package static let lateAfter = Duration.seconds(50 * 60)

    package init(_ age: Duration) {
        self =
            if age < .zero - ProviderTokenSchedule.clockSlack {
                .future
            } else if age < ProviderTokenSchedule.intervalMin {
                .young
            } else if age < Self.lateAfter {
                .good
            } else {
                age < Self.usableFor ? .late : .over
            }
    }

    /// What becomes of a token that has come beside the one in use.
    package enum Replacement: Hashable, Sendable {
        /// It is tried, and used as soon as APNs accepts it.
        case now
        /// It waits until the one in use is old enough.
        case tooSoon
        /// It is not used: it was made before the one in use, or in the same second.
        case notNewer
        /// It is not used: APNs would refuse it.
        case over
    }

    /// - Parameters:
    ///   - ages: those of the one in use, and of the other.
    ///   - isRefused: whether APNs has refused the one in use.
    package static func replacement(
        ages: (inUse: Duration, other: Duration), isRefused: Bool
    ) -> Replacement {
        if ages.other >= ages.inUse { return .notNewer }
        if Self(ages.other) == .over { return .over }
        return Self(ages.inUse) == .young && !isRefused ? .tooSoon : .now
    }
}
