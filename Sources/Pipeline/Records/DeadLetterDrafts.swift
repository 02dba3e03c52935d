// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// Dead letters that still gather tokens. Failed pushes for which a letter would say the same share
/// one, until it is full or old.
struct DeadLetterDrafts {
    private var drafts: [Key: Draft] = [:]
    /// Keys in the order in which their drafts began, which is the order in which they are due. A
    /// draft that was taken when it was full leaves its key behind until its turn.
    private var order: [Begun] = []
    private var first = 0
    private let tokensMax: Int
    private let delay: Duration

    /// All that a letter says of each of its tokens, except for times and attempts. Pushes with the
    /// same oldest event may still have different payloads, subjects and apps.
    private struct Key: Hashable {
        let letter: DeadLetter

        static func == (left: Key, right: Key) -> Bool {
            let (left, right) = (left.letter, right.letter)
            return left.source == right.source && left.payloadSource == right.payloadSource
                && left.reason == right.reason && left.status == right.status
                && left.app == right.app && left.subject == right.subject
                && left.payloadSubject == right.payloadSubject
                && left.installation == right.installation
                && left.collapseID == right.collapseID
                && left.original?.value == right.original?.value
                && left.isOriginalLeftOut == right.isOriginalLeftOut
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(letter.source.partition)
            hasher.combine(letter.source.offset)
            hasher.combine(letter.reason)
            letter.original?.value?.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    private struct Begun {
        var key: Key
        var due: MonotonicTime
    }

    struct Draft {
        var letter: DeadLetter
        var claims: [OffsetClaim]
        var due: MonotonicTime
        /// The approximate size in bytes.
        fileprivate var bytes: Int

        mutating func add(_ other: DeadLetter, _ more: [OffsetClaim]) {
            letter.targets.append(contentsOf: other.targets)
            letter.firstAt = min(letter.firstAt, other.firstAt)
            letter.lastAt = max(letter.lastAt, other.lastAt)
            letter.attempts = max(letter.attempts, other.attempts)
            claims.append(contentsOf: more)
        }
    }

    init(tokensMax: Int, delay: Duration) {
        self.tokensMax = min(tokensMax, DeadLetter.targetsMax)
        self.delay = delay
    }

    var isEmpty: Bool { drafts.isEmpty }
    /// The number of failing tokens in all drafts.
    private(set) var targets = 0
    /// The approximate bytes of all drafts, as records.
    private(set) var bytes = 0

    var nextDue: MonotonicTime { first < order.count ? order[first].due : .distantFuture }

    /// Adds the letter of one failed push. Returns the letter if it is full now.
    mutating func add(
        _ letter: DeadLetter, claims: [OffsetClaim], now: MonotonicTime
    ) -> Draft? {
        let key = Key(letter: letter)
        targets += letter.targets.count
        let cost =
            Self.cost(ofCoordinates: letter, claims: claims.count) + (letter.original?.size ?? 0)
        guard let index = drafts.index(forKey: key) else {
            let draft = Draft(letter: letter, claims: claims, due: now + delay, bytes: cost)
            if letter.targets.count >= tokensMax {
                targets -= letter.targets.count
                return draft
            }
            drafts[key] = draft
            bytes += cost
            order.append(Begun(key: key, due: draft.due))
            return nil
        }
        drafts.values[index].add(letter, claims)
        let more = Self.cost(ofTargets: letter.targets, claims: claims.count)
        drafts.values[index].bytes += more
        bytes += more
        return drafts.values[index].letter.targets.count >= tokensMax ? take(key) : nil
    }

    /// Takes the oldest draft whose time has come, or the oldest of all if `all`.
    mutating func takeDue(now: MonotonicTime, all: Bool) -> Draft? {
        while first < order.count {
            let begun = order[first]
            // A draft of the same key that began later is due later, and is listed again.
            let isGone = drafts[begun.key]?.due != begun.due
            guard isGone || all || begun.due <= now else { return nil }
            advance()
            if !isGone { return take(begun.key) }
        }
        return nil
    }

    private mutating func advance() {
        first += 1
        guard first > 1024, first * 2 > order.count else { return }
        order.removeFirst(first)
        first = 0
    }

    private mutating func take(_ key: Key) -> Draft? {
        let draft = drafts.removeValue(forKey: key)
        targets -= draft?.letter.targets.count ?? 0
        bytes -= draft?.bytes ?? 0
        return draft
    }

    // MARK: Bytes

    /// The approximate size of a letter without its event, as a draft or as a record.
    static func cost(ofCoordinates letter: DeadLetter, claims: Int) -> Int {
        let words = [
            letter.reason, letter.message, letter.app, letter.collapseID, letter.correlation.id,
            letter.correlation.traceparent, letter.installation,
        ]
        let subjects = letter.subject.count + letter.payloadSubject.count
        let text = words.reduce(subjects) { $0 + ($1?.utf8.count ?? 0) }
        return TicketTable.overhead + jsonBytes + 3 * text
            + cost(ofTargets: letter.targets, claims: claims)
    }

    /// Bytes for names, punctuation, times and source, in the letter and in its minimal form.
    private static let jsonBytes = 768

    private static func cost(ofTargets targets: [DeadLetter.Target], claims: Int) -> Int {
        // A token's digits, and the names and punctuation around them.
        targets.reduce(claims * MemoryLayout<OffsetClaim>.stride) {
            $0 + 2 * $1.token.count + $1.apnsTopic.utf8.count + 64
        }
    }

    func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for draft in drafts.values { draft.claims.forEach(body) }
    }

    func checkInvariants() {
        precondition(
            drafts.values.reduce(0) { $0 + $1.letter.targets.count } == targets,
            "the count of tokens is that of all drafts' targets")
        precondition(
            drafts.values.reduce(0) { $0 + $1.bytes } == bytes,
            "the count of bytes is that of all drafts")
        for (key, draft) in drafts {
            precondition(
                order[first...].contains { $0.key == key && $0.due == draft.due },
                "each draft is in the order of due times")
        }
    }
}
