// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel

/// Dead letters that still gather tokens: pushes of one event that fail for one reason go into one
/// letter, until it is full or old.
struct DeadLetterDrafts {
    private var drafts: [Key: Draft] = [:]
    /// Keys in the order in which their drafts began.
    private var order: [Key] = []
    private let tokensMax: Int
    private let delay: Duration

    struct Key: Hashable {
        var origin: RecordPosition
        var reason: String
        var status: UInt16
    }

    struct Draft {
        var letter: DeadLetter
        var holds: [Hold]
        var due: MonotonicTime
    }

    init(tokensMax: Int, delay: Duration) {
        self.tokensMax = min(tokensMax, DeadLetter.targetsMax)
        self.delay = delay
    }

    var isEmpty: Bool { drafts.isEmpty }
    /// Failing tokens in all drafts.
    private(set) var targets = 0

    var nextDue: MonotonicTime { order.first.flatMap { drafts[$0]?.due } ?? .distantFuture }

    /// Adds the letter of one failed push. The result is a letter that is full.
    mutating func add(
        _ letter: DeadLetter, key: Key, holds: [Hold], now: MonotonicTime
    ) -> Draft? {
        targets += letter.targets.count
        if drafts[key] == nil {
            drafts[key] = Draft(letter: letter, holds: holds, due: now + delay)
            order.append(key)
        } else {
            drafts[key]!.letter.targets.append(contentsOf: letter.targets)
            drafts[key]!.letter.firstAt = min(drafts[key]!.letter.firstAt, letter.firstAt)
            drafts[key]!.letter.lastAt = max(drafts[key]!.letter.lastAt, letter.lastAt)
            drafts[key]!.letter.attempts = max(drafts[key]!.letter.attempts, letter.attempts)
            drafts[key]!.holds.append(contentsOf: holds)
        }
        return drafts[key]!.letter.targets.count >= tokensMax ? take(key) : nil
    }

    /// The oldest draft whose time has come; any draft if `all`.
    mutating func takeDue(now: MonotonicTime, all: Bool) -> Draft? {
        guard let key = order.first, all || drafts[key]!.due <= now else { return nil }
        return take(key)
    }

    private mutating func take(_ key: Key) -> Draft? {
        order.removeAll { $0 == key }
        let draft = drafts.removeValue(forKey: key)
        targets -= draft?.letter.targets.count ?? 0
        return draft
    }

    func forEachHold(_ body: (Hold) -> Void) {
        for draft in drafts.values { draft.holds.forEach(body) }
    }
}
