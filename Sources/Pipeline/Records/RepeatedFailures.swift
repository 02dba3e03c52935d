// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// Failures of which a dead letter has said the same before: the same token, reason and status, and
/// no payload. They are counted, and written as one letter when their period is over, so that a
/// dead token whose events go on does not fill the topic.
///
/// They hold no offset: the letter that was written first says all but their number, and a crash
/// loses nothing else.
struct RepeatedFailures {
    fileprivate struct Key: Hashable {
        let token: [UInt8]
        let environment: PushEnvironment
        let apnsTopic: String
        let reason: String
        let status: UInt16?
    }

    private struct Period {
        let end: MonotonicTime
        /// What stands for all failures since the first; nil if there are none.
        var gathered: DeadLetter?
    }

    private var periods: [Key: Period] = [:]
    /// Keys in the order in which their periods began; those before `first` are gone.
    private var order: [Key] = []
    private var first = 0

    /// Some 500 bytes each. Beyond that the oldest period ends early.
    static let periodsMax = 4096

    var count: Int { periods.count }
    /// Failures that no letter has told of yet.
    private(set) var untold = 0

    /// When the oldest period ends.
    var nextDue: MonotonicTime {
        first < order.count ? periods[order[first]]!.end : .distantFuture
    }

    /// Counts the failure if a period of its like is under way.
    mutating func counts(_ letter: DeadLetter, now: MonotonicTime) -> Bool {
        guard let key = Key(letter), let index = periods.index(forKey: key),
            periods.values[index].end > now
        else { return false }
        var gathered = letter
        if let before = periods.values[index].gathered {
            gathered.firstAt = min(before.firstAt, letter.firstAt)
            gathered.attempts = max(before.attempts, letter.attempts)
        }
        gathered.repeats = (periods.values[index].gathered?.repeats ?? 0) + 1
        periods.values[index].gathered = gathered
        untold += 1
        return true
    }

    /// A letter is written: what says the same until `end` is counted.
    /// - Returns: the letter of a period that had to end for want of room, if it had one.
    mutating func began(with letter: DeadLetter, until end: MonotonicTime) -> DeadLetter? {
        guard let key = Key(letter), periods[key] == nil else { return nil }
        let oldest = periods.count < Self.periodsMax ? nil : takeFirst()
        periods[key] = Period(end: end)
        order.append(key)
        return oldest
    }

    /// Ends the oldest period that is over, or the oldest of all if `all`, until one has a letter.
    mutating func takeDue(now: MonotonicTime, all: Bool) -> DeadLetter? {
        while first < order.count, all || nextDue <= now {
            if let letter = takeFirst() { return letter }
        }
        return nil
    }

    private mutating func takeFirst() -> DeadLetter? {
        let period = periods.removeValue(forKey: order[first])!
        first += 1
        if first > 1024, first * 2 > order.count {
            order.removeFirst(first)
            first = 0
        }
        untold -= period.gathered?.repeats ?? 0
        return period.gathered
    }

    func checkInvariants() {
        precondition(
            periods.count == order.count - first, "each period has exactly one place in the order")
        precondition(periods.count <= Self.periodsMax, "there are at most periodsMax periods")
        let sum = periods.values.reduce(0) { $0 + ($1.gathered?.repeats ?? 0) }
        precondition(sum == untold, "the count of untold failures is that of all periods")
    }
}

extension RepeatedFailures.Key {
    /// Nil for a letter that has a payload, or is not of one token: another says something else.
    fileprivate init?(_ letter: DeadLetter) {
        guard letter.targets.count == 1, letter.original == nil, !letter.isOriginalLeftOut else {
            return nil
        }
        token = letter.targets[0].token
        environment = letter.targets[0].environment
        apnsTopic = letter.targets[0].apnsTopic
        reason = letter.reason
        status = letter.status
    }
}
