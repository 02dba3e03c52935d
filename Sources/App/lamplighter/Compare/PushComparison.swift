// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel

/// Holds the pushes of two senders against each other, as they come in the order of their times: which
/// of them both would have sent, and what may be said of the others. It remembers the pushes of the last
/// while, and is bounded.
struct PushComparison {
    enum Side: Int, CaseIterable {
        case old, shadow

        var other: Side { self == .old ? .shadow : .old }
    }

    struct Push {
        var side: Side
        /// The first 8 bytes of the token's SHA-256.
        var token: UInt64
        var at: WallTime
    }

    /// What became of a push.
    enum Finding: Int, CaseIterable {
        /// The other sender has pushed to the token as well, within the window.
        case matched
        /// So it has, and that push has a counterpart already: one sender has sent one for several.
        case coalesced
        /// The other sender has pushed to the token, after or before the window.
        case late
        /// The other sender has not, and the token has no registration.
        case unregistered
        /// The other sender has not, and nothing more is known.
        case unmatched
        /// It is of a time of which the other log has nothing.
        case outside

        /// Whether the token was told by both senders.
        var isAgreement: Bool { self == .matched || self == .coalesced }
    }

    struct Limits {
        /// How far apart the same push of both senders may be.
        var window = Duration.seconds(60)
        /// How far apart, to be called late.
        var late = Duration.seconds(600)
        /// The most pushes in memory, some 60 bytes each.
        var pushesMax = 5_000_000
    }

    /// Why the logs cannot be compared.
    enum Fault: Error, Equatable {
        /// A push is older than others of before, by more than the window.
        case disordered(by: Duration)
        case tooMany
    }

    private struct Entry {
        var token: UInt64
        /// Milliseconds since 1970.
        var at: Int64
        /// The number of the next push to this token.
        var next: Int?
        var side: Side
        var isMatched = false
        /// Whether the other sender has pushed to the token within the window.
        var hasNear = false
        /// Whether it has before or after that, as far as is looked.
        var hasFar = false
    }

    private let window: Int64
    private let late: Int64
    private let pushesMax: Int
    private let registered: Set<UInt64>?

    /// The last pushes, oldest first; the first of them has the number `firstNumber`.
    private var entries: [Entry] = []
    private var firstIndex = 0
    private var firstNumber = 0
    /// The oldest and the newest push in memory of each token, by their numbers.
    private var tokens: [UInt64: (first: Int, last: Int)] = [:]
    private var newest = Int64.min
    /// When each log begins and, once that is known, ends.
    private var begins: [Int64?] = [nil, nil]
    private var latest: [Int64?] = [nil, nil]
    private var hasEnded = [false, false]

    private(set) var counts = Side.allCases.map { _ in Finding.allCases.map { _ in 0 } }
    /// The first pushes of each finding that is no agreement.
    private(set) var samples: [[[Push]]] = Side.allCases.map { _ in
        Finding.allCases.map { _ in [] }
    }

    static let samplesMax = 3

    /// - Parameter registered: the tokens that have a registration; nil where that is not known.
    init(_ limits: Limits, registered: Set<UInt64>? = nil) {
        window = Self.milliseconds(limits.window)
        late = Self.milliseconds(max(limits.window, limits.late))
        pushesMax = limits.pushesMax
        self.registered = registered
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        Int64(duration / .milliseconds(1))
    }

    // MARK: Pushes come in

    /// Takes the next push. Pushes of both logs come together, in the order of their times.
    mutating func take(_ push: Push) throws(Fault) {
        let at = push.at.milliseconds
        newest = max(newest, at)
        guard newest - at <= window else {
            throw .disordered(by: .milliseconds(newest - at))
        }
        let side = push.side.rawValue
        begins[side] = min(begins[side] ?? at, at)
        latest[side] = max(latest[side] ?? at, at)
        forget(before: newest - late - window)
        guard entries.count - firstIndex < pushesMax else { throw .tooMany }
        var entry = Entry(token: push.token, at: at, side: push.side)
        compare(&entry)
        append(entry)
    }

    /// One of the logs has no more.
    mutating func ended(_ side: Side) { hasEnded[side.rawValue] = true }

    /// Judges what is left.
    mutating func finish() {
        hasEnded = [true, true]
        forget(before: .max)
    }

    /// Compares a push with those of the other side that are in memory.
    private mutating func compare(_ entry: inout Entry) {
        var number = tokens[entry.token]?.first
        while let current = number {
            let index = current - firstNumber + firstIndex
            number = entries[index].next
            guard entries[index].side != entry.side else { continue }
            let distance = abs(entry.at - entries[index].at)
            if distance <= window {
                (entry.hasNear, entries[index].hasNear) = (true, true)
                if !entry.isMatched, !entries[index].isMatched {
                    (entry.isMatched, entries[index].isMatched) = (true, true)
                }
            } else if distance <= late {
                (entry.hasFar, entries[index].hasFar) = (true, true)
            }
        }
    }

    private mutating func append(_ entry: Entry) {
        let number = firstNumber + entries.count - firstIndex
        if let known = tokens[entry.token] {
            entries[known.last - firstNumber + firstIndex].next = number
            tokens[entry.token] = (known.first, number)
        } else {
            tokens[entry.token] = (number, number)
        }
        entries.append(entry)
    }

    // MARK: Pushes are judged

    private mutating func forget(before horizon: Int64) {
        while firstIndex < entries.count, entries[firstIndex].at < horizon {
            let entry = entries[firstIndex]
            judge(entry)
            tokens[entry.token] = entry.next.map { ($0, tokens[entry.token]!.last) }
            firstIndex += 1
            firstNumber += 1
        }
        // Moves what is left rarely, so that each push is moved about once.
        if firstIndex > 1024, firstIndex * 2 > entries.count {
            entries.removeFirst(firstIndex)
            firstIndex = 0
        }
    }

    private mutating func judge(_ entry: Entry) {
        let finding = finding(on: entry)
        let (side, number) = (entry.side.rawValue, finding.rawValue)
        counts[side][number] += 1
        guard !finding.isAgreement, samples[side][number].count < Self.samplesMax else { return }
        samples[side][number].append(
            Push(side: entry.side, token: entry.token, at: WallTime(milliseconds: entry.at)))
    }

    private func finding(on entry: Entry) -> Finding {
        if entry.isMatched { return .matched }
        if entry.hasNear { return .coalesced }
        if entry.hasFar { return .late }
        guard isInside(entry) else { return .outside }
        if let registered, entry.side == .old, !registered.contains(entry.token) {
            return .unregistered
        }
        return .unmatched
    }

    /// Whether the other log has something of that time, too.
    private func isInside(_ entry: Entry) -> Bool {
        let other = entry.side.other.rawValue
        guard let begin = begins[other], entry.at >= begin else { return false }
        return !hasEnded[other] || entry.at <= latest[other]!
    }

    // MARK: The result

    /// The pushes that were compared.
    var compared: Int {
        counts.reduce(0) { sum, side in sum + side.reduce(0, +) - side[Finding.outside.rawValue] }
    }

    var agreed: Int {
        counts.reduce(0) { sum, side in
            sum + Finding.allCases.filter(\.isAgreement).reduce(0) { $0 + side[$1.rawValue] }
        }
    }

    /// From 0 to 1; nil if there is nothing to compare.
    var agreement: Double? { compared > 0 ? Double(agreed) / Double(compared) : nil }

    /// The time of which both logs have something; nil if there is none.
    var period: ClosedRange<WallTime>? {
        guard let oldBegin = begins[0], let shadowBegin = begins[1], let oldEnd = latest[0],
            let shadowEnd = latest[1]
        else { return nil }
        let (from, to) = (max(oldBegin, shadowBegin), min(oldEnd, shadowEnd))
        return from <= to ? WallTime(milliseconds: from)...WallTime(milliseconds: to) : nil
    }

    func count(_ finding: Finding, of side: Side) -> Int { counts[side.rawValue][finding.rawValue] }

    func samples(_ finding: Finding, of side: Side) -> [Push] {
        samples[side.rawValue][finding.rawValue]
    }
}
