// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import Planning
internal import PushModel

/// How many pushes each token was sent today, for the push types that have a budget
/// (`planning.budget`). A day is one of UTC.
///
/// Each worker counts what it has sent itself: a token whose subjects are in partitions of two
/// workers has two counts, and a restart begins anew.
struct TokenBudgets: ~Copyable {
    /// What a push type has come to since the day began.
    struct Use {
        /// Tokens that were sent more pushes than the budget.
        var tokensOver = 0
        /// The pushes above it.
        var pushesOver = 0
    }

    private struct Row: BitwiseCopyable {
        var count: UInt16
        /// Of the token and the day, so that neither the row of a token that is gone nor yesterday's
        /// count is taken for this one's: nothing is cleared at midnight.
        var tag: UInt16
    }

    /// Whether any type has a budget.
    private(set) var isOn = false
    /// Whether a push above the budget waits for the end of its window.
    private(set) var isThinning = false
    /// Pushes a day, of each push type; 0 for no budget.
    private var limits: [Int] = []
    /// In milliseconds.
    private var dayLength: Int64 = 86_400_000
    private var rows = Column<Row>(capacity: 1)
    private var today = Int64.min
    /// Of each push type.
    private var uses: [Use] = []
    /// The subjects for which tokens were sent pushes above their budgets.
    private var subjects = FrequentSubjects()
    private let byAddress = PassedByAddress()

    init(_ budgets: PushBudgets) { adopt(budgets) }

    mutating func adopt(_ budgets: PushBudgets) {
        let limits = PushType.allTypes.map { budgets[$0] }
        if self.limits != limits {
            // What was above another budget says nothing of this one.
            today = .min
            rows = Column(capacity: 1)
        }
        self.limits = limits
        dayLength = budgets.day.nanoseconds / 1_000_000
        isOn = limits.contains { $0 > 0 }
        isThinning = isOn && budgets.isThinning
        if uses.count != limits.count { uses = Array(repeating: Use(), count: limits.count) }
        if !isOn {
            rows = Column(capacity: 1)
        } else if rows.capacity == 1 {
            rows = Column(capacity: TokenID.positionsMax)
        }
    }

    var bytes: Int { isOn ? rows.bytes : 0 }

    func limit(of type: PushType) -> Int { limits[Int(type.rawValue)] }

    /// What the token was sent today of the type that has a budget.
    func used(_ token: TokenID, _ bytes: UnsafeRawBufferPointer, now: WallTime) -> Int {
        let index = token.position
        guard isOn, index < rows.count else { return 0 }
        let row = rows[index]
        return row.tag == Self.tag(bytes, day: day(of: now)) ? Int(row.count) : 0
    }

    /// APNs has accepted a push.
    /// - Returns: whether it was above the token's budget.
    mutating func accepted(
        _ token: TokenID, _ bytes: UnsafeRawBufferPointer, _ type: PushType, now: WallTime
    ) -> Bool {
        let limit = limit(of: type)
        guard limit > 0 else { return false }
        begin(day(of: now))
        let count = used(token, bytes, now: now) + 1
        let index = token.position
        rows.extend(to: index + 1)
        rows[index] = Row(
            count: UInt16(clamping: count), tag: Self.tag(bytes, day: today))
        guard count > limit else { return false }
        uses[Int(type.rawValue)].pushesOver += 1
        if count == limit + 1 { uses[Int(type.rawValue)].tokensOver += 1 }
        return true
    }

    /// Counts the subject of a push that was above the budget.
    mutating func countSubject(of push: PushContent, app: AppID) {
        subjects.count(
            FrequentSubjects.Entry(
                subject: push.subject, tag: push.subjectTag, app: app, count: 1))
    }

    func use(of type: PushType, now: WallTime) -> Use {
        day(of: now) == today ? uses[Int(type.rawValue)] : Use()
    }

    func topSubjects(_ count: Int, now: WallTime) -> [FrequentSubjects.Entry] {
        day(of: now) == today ? subjects.top(count) : []
    }

    /// Whether the token was sent all that its budget allows.
    func isSpent(
        _ token: TokenID, _ bytes: UnsafeRawBufferPointer, _ type: PushType, now: WallTime
    ) -> Bool {
        let limit = limit(of: type)
        return limit > 0 && used(token, bytes, now: now) >= limit
    }

    /// When the token's window ends: an even share of the day, which begins at another time for each
    /// token and is the same in all workers, so that what they hold back of one token meets.
    func windowEnd(
        _ bytes: UnsafeRawBufferPointer, _ type: PushType, now: WallTime
    ) -> WallTime {
        let window = dayLength / Int64(max(1, limit(of: type)))
        let start = Int64(StableHash.hash64(bytes, seed: 0) % UInt64(window))
        let passed = (now.milliseconds - start) % window
        return WallTime(milliseconds: now.milliseconds - passed + (passed < 0 ? 0 : window))
    }

    /// Turns the page where the day is over.
    private mutating func begin(_ day: Int64) {
        guard day != today else { return }
        today = day
        for index in uses.indices { uses[index] = Use() }
        subjects = FrequentSubjects()
    }

    private func day(of time: WallTime) -> Int64 { time.milliseconds / dayLength }

    private static func tag(_ bytes: UnsafeRawBufferPointer, day: Int64) -> UInt16 {
        // The last bytes of a token: APNs makes them at random.
        var tag = UInt16(truncatingIfNeeded: day) &* 40_503
        for byte in bytes.suffix(2) { tag = tag &* 257 ^ UInt16(byte) }
        return tag
    }
}

/// What the pushes of one type have come to since the day began, on this worker.
package struct BudgetUse: Codable, Sendable, Equatable {
    /// The name of the push type.
    package var type: String
    /// Pushes a token and day.
    package var perDay: Int
    /// Tokens that were sent more.
    package var tokensOver: Int
    /// The pushes above it.
    package var pushesOver: Int

    /// The most subjects that are named.
    static let subjectsMax = 10
}

/// A subject whose tokens were sent pushes above their budgets today.
package struct SubjectOverBudget: Codable, Sendable, Equatable {
    package var app: String
    package var subject: String
    /// How many, or a few more than that.
    package var pushes: Int
}

/// The subjects that were counted most, in bounded memory. A subject that comes when the list is full
/// takes the place of the rarest and goes on from its count, so a frequent one is never missed, and
/// a count is too high by at most that of the rarest (Metwally and others, "Efficient Computation of
/// Frequent and Top-k Elements in Data Streams", 2005).
struct FrequentSubjects {
    struct Entry: BitwiseCopyable {
        var subject: SubjectID
        /// Of the subject's hash: its number may be given to another one.
        var tag: UInt32
        var app: AppID
        var count: Int
        /// The topic of the latest event, by its position, and how many entries the subject's list had
        /// then. Of pushes above a budget neither is said.
        var topic: UInt16 = 0
        var audience: Int = 0
    }

    private(set) var entries: [Entry] = []
    /// Of the same entries: what they are known by.
    private var keys: [UInt64] = []
    /// No entry has a smaller count, since counts only grow.
    private var least = 0
    /// Where the search for one that has it goes on.
    private var cursor = 0

    static let most = 64

    /// The most frequent ones, the first of them first.
    func top(_ count: Int) -> [Entry] {
        Array(entries.sorted { $0.count > $1.count }.prefix(count))
    }

    /// Counts a subject as often as the entry says.
    mutating func count(_ seen: Entry) {
        var seen = seen
        let key = UInt64(seen.subject.rawValue) << 32 | UInt64(seen.tag)
        if let known = keys.firstIndex(of: key) {
            seen.count += entries[known].count
            entries[known] = seen
        } else if entries.count < Self.most {
            keys.append(key)
            entries.append(seen)
        } else {
            let place = rarest()
            seen.count += entries[place].count
            keys[place] = key
            entries[place] = seen
        }
    }

    private mutating func rarest() -> Int {
        while true {
            for _ in entries.indices {
                cursor = (cursor + 1) % Self.most
                if entries[cursor].count <= least { return cursor }
            }
            least = entries.lazy.map(\.count).min()!
        }
    }
}
