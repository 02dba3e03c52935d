// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Judges each event: which tokens must get a push for it, and how each pair ended. A pair without
/// evidence of an end is lost; nothing is inferred from totals.
struct PairJudge {
    private let evidence: Evidence
    private let settings: CheckSettings
    private let endedAt: Int64
    /// Whether each accepted push has already ended a pair: a later pair that it ends is coalesced.
    private var hasProved: [Bool]
    /// The latencies from event to accepted push, in nanoseconds.
    private var latencies: [Int64] = []
    private(set) var report = CheckReport()

    /// - Parameter endedAt: the time up to which pushes can have expired, in nanoseconds since
    ///   1970.
    init(_ evidence: Evidence, settings: CheckSettings, endedAt: Int64) {
        self.evidence = evidence
        self.settings = settings
        self.endedAt = endedAt
        hasProved = Array(repeating: false, count: evidence.accepted.rows.count)
    }

    mutating func judge(_ event: ProducedEvent) {
        report.events += 1
        guard !event.isUnreadable else { return judgeUnreadable(event) }
        for (token, claim) in claims(on: event) {
            switch claim {
            case .eitherWay:
                report.ambiguous += 1
            case .owed(let withdrawnAt):
                report.obligations += 1
                judge(event, token, withdrawnAt: withdrawnAt)
            }
        }
    }

    /// Completes the report with the totals.
    mutating func finish() -> CheckReport {
        report.acceptedPushes = evidence.acceptedCount
        report.duplicates = evidence.accepted.repetitions()
        report.kills = settings.kills
        report.strayAnswers = evidence.strayAnswers
        let elapsed = Double(evidence.lastAcceptedAt &- evidence.firstAcceptedAt) / 1e9
        if evidence.acceptedCount > 1, elapsed > 0 {
            report.pushesPerSecond = Double(evidence.acceptedCount) / elapsed
        }
        latencies.sort()
        report.p50ms = Percentile.nearestRank(50, of: latencies).map { Double($0) / 1e6 }
        report.p99ms = Percentile.nearestRank(99, of: latencies).map { Double($0) / 1e6 }
        return report
    }

    // MARK: What is owed

    private enum Claim {
        /// The pair is an obligation until the registration was removed, in milliseconds since
        /// 1970.
        case owed(withdrawnAt: Int64)
        case eitherWay
    }

    /// The claim of each token on the event. If several registrations have the token, the strongest
    /// claim counts.
    private func claims(on event: ProducedEvent) -> [UInt32: Claim] {
        let t = event.t / 1_000_000
        let registrationGrace = settings.registrationGrace.wholeNanoseconds / 1_000_000
        var claims: [UInt32: Claim] = [:]
        let showings = evidence.registrations.showings(
            app: event.app, subject: event.subject)
        for showing in showings {
            // The registration was neither in effect around the event nor soon after it.
            guard showing.from <= t + registrationGrace, showing.until > t - registrationGrace
            else { continue }
            let isCertain =
                showing.from <= t - registrationGrace
                && (showing.until == .max || showing.until > t + registrationGrace)
            guard isCertain else {
                if claims[showing.token] == nil { claims[showing.token] = .eitherWay }
                continue
            }
            var until = showing.until
            if case .owed(let other)? = claims[showing.token] { until = max(until, other) }
            claims[showing.token] = .owed(withdrawnAt: until)
        }
        return claims
    }

    // MARK: How it ended

    private mutating func judge(_ event: ProducedEvent, _ token: UInt32, withdrawnAt: Int64) {
        if let push = evidence.accepted.first(of: token, after: event.t) {
            latencies.append(evidence.accepted.rows[push].t - event.t)
            if hasProved[push] { report.coalesced += 1 } else { report.accepted += 1 }
            hasProved[push] = true
        } else if evidence.isDeadLettered(event, token) {
            report.deadLettered += 1
        } else if evidence.isSuppressed(event, token) {
            report.suppressed += 1
        } else if isWithdrawn(event, at: withdrawnAt) {
            report.withdrawn += 1
        } else if expiry(of: event) <= endedAt {
            report.expired += 1
        } else {
            let after = (withdrawnAt - event.t / 1_000_000) / 1000
            report.lose(
                CheckReport.Loss(
                    event: event.coordinates, tokenID: evidence.tokens.tokenID(token),
                    isTruncated: evidence.isTruncated(event.coordinates),
                    withdrawnAfter: withdrawnAt == .max ? nil : after))
        }
    }

    /// Judges an unreadable event, whose only obligation is the dead letter that reports it.
    private mutating func judgeUnreadable(_ event: ProducedEvent) {
        report.obligations += 1
        if evidence.letters.isUnreadable(event.coordinates) {
            report.deadLettered += 1
        } else {
            report.lose(
                CheckReport.Loss(
                    event: event.coordinates, tokenID: nil,
                    isTruncated: evidence.isTruncated(event.coordinates)))
        }
    }

    private func isWithdrawn(_ event: ProducedEvent, at withdrawnAt: Int64) -> Bool {
        let patience = settings.patience.wholeNanoseconds / 1_000_000
        return withdrawnAt != .max && withdrawnAt <= event.t / 1_000_000 + patience
    }

    private func expiry(of event: ProducedEvent) -> Int64 {
        if let expiresAt = event.expiresAt { return expiresAt }
        let (sum, isOver) = event.t.addingReportingOverflow(settings.ttl.wholeNanoseconds)
        return isOver ? .max : sum
    }
}

enum Percentile {
    /// The nearest-rank percentile: the smallest value that at least `percent` % of the values do
    /// not exceed; nil if there are none.
    ///
    /// - Parameter sorted: in ascending order.
    static func nearestRank(_ percent: Int, of sorted: [Int64]) -> Int64? {
        guard !sorted.isEmpty else { return nil }
        let rank = (sorted.count * percent + 99) / 100
        return sorted[max(rank, 1) - 1]
    }
}
