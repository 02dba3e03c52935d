// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Tells for one pool which connection fails while the others do not, so that it is replaced, and
/// whether a failure is the pool's or only that connection's.
///
/// One connection is replaced at a time, and the next later each time, so that an address that is ill
/// or an APNs that is ill all over costs it few connections.
package struct OutlierDetection: Sendable {
    /// The connections of a pool that are open for pushes or opening, counted.
    package struct Census: Sendable {
        package private(set) var connections = 0
        package private(set) var faulting = 0
        /// Those that have answered something, or count as faulting all the same.
        private var judged = 0
        /// The answers of those that are not faulting.
        fileprivate var answers = 0
        fileprivate var failures = 0
        fileprivate var answeredAt = MonotonicTime(nanoseconds: 0)

        package init() {}

        package mutating func add(_ health: ConnectionHealth) {
            connections += 1
            if health.isFaulting {
                faulting += 1
            } else {
                answers += health.answers
                failures += health.failures
            }
            if health.isFaulting || health.answers > 0 { judged += 1 }
            answeredAt = max(answeredAt, health.answeredAt)
        }

        /// Whether most connections have faults, of those that have answered something.
        package var mostAreFaulting: Bool { faulting * 2 > judged }
    }

    /// Why a connection is replaced.
    package enum Cause: Sendable {
        /// It fails and the others do not.
        case failures
        /// It answers nothing and the others do.
        case silence
        /// All fail: another connection may reach a part of APNs that does not.
        case allFail
    }

    package enum Judgement: Equatable, Sendable {
        case keep
        /// Send nothing more on it while the others take pushes.
        case avoid
        /// Send nothing more on it; open another.
        case retire(Cause)
    }

    private let backoff: Backoff
    private var retireAt = MonotonicTime(nanoseconds: .min)
    private var retiredAt = MonotonicTime(nanoseconds: .min)
    private var retirements = 0
    private var faultsSince = 0
    /// Whether the pool's only connection has been replaced and the new one is unproven.
    private var hasReplacedOnly = false
    private var wereMostFaulting = false
    /// Whether the pool's latest answer was a fault.
    private var isLatestFault = false
    private var isAlert = false
    private var lookedAt = MonotonicTime(nanoseconds: .min)
    /// The longest answer time of late.
    private var answerTime = Duration.zero

    /// How many answers decide.
    private static let answersMin = 20
    /// How long a connection may answer nothing while others do.
    private static let quietMax = Duration.seconds(3)
    private static let lookInterval = Duration.milliseconds(500)
    /// After so long without a retirement the next wait begins at the shortest.
    private static let calm = Duration.seconds(600)

    /// - Parameter backoff: the wait between two retirements.
    package init(backoff: Backoff) { self.backoff = backoff }

    // MARK: Facts

    /// A request failed.
    /// - Parameter isLeft: whether its connection has been given up before.
    package mutating func failed(_ failure: ConnectionHealth.Failure, isLeft: Bool = false) {
        isAlert = true
        guard failure == .fault, !isLeft else { return }
        faultsSince += 1
        isLatestFault = true
    }

    /// A push was accepted this long after it was sent. A sample is enough.
    package mutating func accepted(after time: Duration) {
        isLatestFault = false
        answerTime = time > answerTime ? time : answerTime - (answerTime - time) / 16
    }

    /// A connection was lost with requests in flight; another will be opened.
    /// - Parameter left: how many others the pool has.
    package mutating func lost(left: Int) {
        if left == 0 { hasReplacedOnly = true }
    }

    /// A connection was retired by a judgement.
    /// - Parameter left: how many others the pool has.
    package mutating func replaced(left: Int, at now: MonotonicTime) {
        if now - retiredAt >= Self.calm { retirements = 0 }
        retiredAt = now
        retireAt = now + backoff.ceiling(attempt: retirements)
        retirements += 1
        faultsSince = 0
        lost(left: left)
    }

    // MARK: Judgements

    /// A connection is opened.
    /// - Parameter others: how many the pool has.
    /// - Returns: what is presumed of it: as little as of those before it, while most of them have
    ///   faults. Connections that end after an answer or two leave no other trace of their faults.
    package mutating func opened(others: Int) -> ConnectionHealth {
        if others == 0, isLatestFault { hasReplacedOnly = true }
        return ConnectionHealth(isDoubted: wereMostFaulting || isLatestFault)
    }

    /// Whether a fault is the pool's, and not only of the connection that had it.
    package func isOfPool(_ census: Census, at now: MonotonicTime) -> Bool {
        census.mostAreFaulting && (census.connections > 1 || hasReplacedOnly || now < retireAt)
    }

    /// Whether it is time to judge the connections.
    package func isDue(at now: MonotonicTime) -> Bool {
        isAlert || now >= lookedAt + Self.lookInterval
    }

    /// Begins a round of judgements.
    /// - Returns: whether what was answered before counts no more: APNs has failed as a whole, and
    ///   does so no longer.
    package mutating func began(_ census: Census, at now: MonotonicTime) -> Bool {
        lookedAt = now
        // A transport that connects on demand may have none. The next is presumed as ill as they.
        guard census.connections > 0 else { return false }
        let hasRecovered = wereMostFaulting && !census.mostAreFaulting && census.connections > 1
        wereMostFaulting = census.mostAreFaulting
        if census.connections > 1 { hasReplacedOnly = false }
        isAlert = census.faulting > 0 || hasReplacedOnly
        return hasRecovered
    }

    /// Judges one connection of the census.
    package mutating func judge(
        _ health: ConnectionHealth, inFlight: Int, in census: Census, at now: MonotonicTime
    ) -> Judgement {
        if census.connections == 1, hasReplacedOnly, health.answers >= Self.answersMin,
            health.failures * 2 < health.answers
        {
            hasReplacedOnly = false
        }
        guard let cause = cause(health, inFlight: inFlight, in: census, at: now) else {
            return .keep
        }
        isAlert = true
        if now >= retireAt { return .retire(cause) }
        return cause == .allFail ? .keep : .avoid
    }

    private func cause(
        _ health: ConnectionHealth, inFlight: Int, in census: Census, at now: MonotonicTime
    ) -> Cause? {
        if census.mostAreFaulting {
            // Two probes have failed, where the breaker is open.
            return health.hasJustFailedTwice && faultsSince >= 2 ? .allFail : nil
        }
        guard census.connections > 1 else { return nil }
        if isFailingAlone(health, in: census) { return .failures }
        let quietMax = max(Self.quietMax, answerTime * 3)
        let isQuiet = inFlight > 0 && census.answeredAt >= health.quietSince + quietMax
        return isQuiet ? .silence : nil
    }

    /// Whether at least half of the connection's requests failed, and at most a quarter of that share of
    /// those on the others that are well.
    private func isFailingAlone(_ health: ConnectionHealth, in census: Census) -> Bool {
        guard health.answers >= Self.answersMin, health.failures * 2 >= health.answers else {
            return false
        }
        let isCounted = !health.isFaulting
        let othersAnswers = census.answers - (isCounted ? health.answers : 0)
        let othersFailures = census.failures - (isCounted ? health.failures : 0)
        guard othersAnswers >= Self.answersMin else { return false }
        return othersFailures * health.answers * 4 <= health.failures * othersAnswers
    }
}
