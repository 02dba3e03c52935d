// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The evidence of a run, apart from its events.
struct Evidence {
    var tokens = TokenBook()
    var registrations = RegistrationHistory()
    /// The suppressions; nil if their topic was not given.
    var suppressions: SuppressionHistory?
    var letters = DeadLetterBook()
    var accepted = AnswerTable()
    var refused = AnswerTable()
    /// The oldest offset that the broker still had, of each partition for which it is known.
    var lowWatermarks: [Partition: Int64] = [:]

    struct Partition: Hashable {
        var topic: String
        var partition: Int32
    }

    /// Answers to tokens that are in no registration.
    private(set) var strayAnswers = 0
    private(set) var acceptedCount = 0
    private(set) var firstAcceptedAt = Int64.max
    private(set) var lastAcceptedAt = Int64.min
    /// The time of the latest answer, in nanoseconds since 1970.
    private(set) var lastAnswerAt = Int64.min

    mutating func add(_ answer: LoggedAnswer) {
        lastAnswerAt = max(lastAnswerAt, answer.t)
        if answer.status == 200 {
            acceptedCount += 1
            firstAcceptedAt = min(firstAcceptedAt, answer.t)
            lastAcceptedAt = max(lastAcceptedAt, answer.t)
        }
        guard let token = tokens.number(answer.address) else {
            strayAnswers += 1
            return
        }
        if answer.status == 200 {
            accepted.append(answer, token: token, tag: answer.apnsID)
        } else {
            refused.append(answer, token: token, tag: answer.reason)
        }
    }

    /// Sorts the answers. To be called once, after the last `add`.
    mutating func indexAnswers() {
        accepted.index(tokens: tokens.count)
        refused.index(tokens: tokens.count)
    }

    // MARK: Endings

    /// Whether a dead letter ends the pair.
    ///
    /// A letter alone proves nothing: the simulator's log must contain the refusal that it reports,
    /// after the event, which the letter names or which joined the push later. Only a push that
    /// used up its attempts may have gone unanswered; then the letter must name this very event.
    func isDeadLettered(_ event: ProducedEvent, _ token: UInt32) -> Bool {
        let failures = letters.failures(of: token)
        guard !failures.isEmpty else { return false }
        if failures.contains(where: { $0.mayBeUnanswered && $0.event == event.coordinates }) {
            return true
        }
        return refused.positions(of: token).contains { position in
            let row = refused.rows[position]
            guard row.t > event.t else { return false }
            return failures.contains { failure in
                guard row.t < (failure.lastAt + 1).nanoseconds else { return false }
                return failure.mayBeUnanswered
                    || failure.status == row.status && failure.reason == row.tag
            }
        }
    }

    /// Whether APNs had reported that the token is dead: after the event, or before it without a
    /// registration since. If the suppressions are known, a report before the event must have
    /// caused one.
    func isSuppressed(_ event: ProducedEvent, _ token: UInt32) -> Bool {
        let milliseconds = event.t / 1_000_000
        let registeredAt = registrations.registeredAt(of: token, at: milliseconds) ?? .min
        let standing = suppressions?.standing(
            on: token, registeredAt: registeredAt, at: milliseconds)
        return refused.positions(of: token).contains { position in
            let row = refused.rows[position]
            if row.status == 410, row.t > event.t { return true }
            guard let standing else {
                return row.status == 410 && row.t >= registeredAt.nanoseconds
            }
            return standing.contains { suppression in
                suppression.status == row.status && row.t < (suppression.t + 1).nanoseconds
                    && row.t >= registeredAt.nanoseconds
            }
        }
    }

    /// Whether the broker had dropped the event when the low watermarks were read.
    func isTruncated(_ event: Coordinates) -> Bool {
        let partition = Partition(topic: event.topic, partition: event.partition)
        return lowWatermarks[partition].map { event.offset < $0 } ?? false
    }
}

extension Int64 {
    /// The milliseconds as nanoseconds; values that do not fit become the ends of the range.
    fileprivate var nanoseconds: Int64 {
        let (product, isOver) = multipliedReportingOverflow(by: 1_000_000)
        return isOver ? (self < 0 ? .min : .max) : product
    }
}
