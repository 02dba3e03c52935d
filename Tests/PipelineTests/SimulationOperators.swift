// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// What operators do while workers run: they pause, drop and limit, and lift it again. Each worker
/// reads of it in the restrictions topic, when it comes to it.
struct SimulatedOperators {
    struct Record {
        let key: [UInt8]
        let value: [UInt8]?
        let scope: Restriction.Scope
        /// Nil lifts what was asked for before.
        let restriction: Restriction?
    }

    private(set) var records: [Record] = []
    /// Whether they restrict anything in this life.
    let areRestricting: Bool
    private var dice: SplitMix64

    /// Apart, so that a life without them goes on as it would.
    init(seed: UInt64) {
        dice = SplitMix64(seed: seed &* 13 &+ 11)
        areRestricting = seed % 5 == 2
    }

    mutating func chance(_ percent: UInt64) -> Bool { dice.next(below: 100) < percent }

    mutating func below(_ bound: Int) -> Int { Int(dice.next(below: UInt64(bound))) }

    /// Pauses, drops, limits or resumes something.
    mutating func command(now: Now) {
        if chance(45), let scope = restricted.randomElement(using: &dice) { return lift(scope) }
        let scope = scope()
        let actions = [.pause, .drop, .limit(perSecond: 1 + Int(dice.next(below: 40)))]
            .filter { Restriction.isPossible($0, for: scope) }
        var restriction = Restriction(
            actions.randomElement(using: &dice)!, by: "anna", at: now.wall)
        // By the clock of whoever asks; each worker goes by its own.
        if chance(30) { restriction.until = now.wall + .seconds(1 + dice.next(below: 20)) }
        append(scope, restriction)
    }

    /// Lifts all that was ever asked for.
    mutating func liftAll() {
        for scope in restricted { lift(scope) }
    }

    private mutating func lift(_ scope: Restriction.Scope) { append(scope, nil) }

    private mutating func append(_ scope: Restriction.Scope, _ restriction: Restriction?) {
        records.append(
            Record(
                key: RecordKey.restriction(scope),
                value: restriction.map(RestrictionEncoder.value), scope: scope,
                restriction: restriction))
    }

    /// What was asked for and not lifted, in the order of the topic.
    private var restricted: [Restriction.Scope] {
        var last: [Restriction.Scope: Int] = [:]
        for (position, record) in records.enumerated() { last[record.scope] = position }
        return records.indices
            .filter { last[records[$0].scope] == $0 && records[$0].restriction != nil }
            .map { records[$0].scope }
    }

    private mutating func scope() -> Restriction.Scope {
        let app = SimulationWorker.app
        let classes = [TokenClass.control, .widget, .device]
        switch dice.next(below: 14) {
        case 0..<2: return .pushes(app: app, tokenClass: nil)
        case 2..<4: return .pushes(app: nil, tokenClass: classes.randomElement(using: &dice))
        case 4..<7: return .pushes(app: app, tokenClass: classes.randomElement(using: &dice))
        case 7..<9: return .topic(SimulationWorker.topics.randomElement(using: &dice)!)
        // Its events are under way for long enough to be dropped there.
        case 9..<12: return .subject(Array("hot".utf8), app: app)
        case 12: return .subject(Array("s\(dice.next(below: 6))".utf8), app: app)
        default: return .pushes(app: "com.example.Other", tokenClass: nil)
        }
    }
}

/// What a worker has read of this, understood as docs/restrictions.md says.
struct SimulatedRestrictions {
    private var known: [Restriction.Scope: Restriction] = [:]
    private(set) var inForce: [Restriction.Scope: Restriction.Action] = [:]
    private var limits: [Restriction.Scope: SimulatedLimit] = [:]
    /// This worker's share of what limits allow.
    var share = 1.0
    private var shareInForce = 1.0

    mutating func read(_ record: SimulatedOperators.Record) {
        known[record.scope] = record.restriction
    }

    /// A turn begins: from here on the worker does as it has read.
    /// - Returns: the actions that it did not follow before.
    mutating func follow(now: Now) -> [Restriction.Action] {
        let before = inForce
        inForce = known.filter { $0.value.until.map { $0 > now.wall } ?? true }
            .mapValues(\.action)
        for scope in limits.keys { limits[scope]!.earn(share: shareInForce, now: now.monotonic) }
        shareInForce = max(share, 0.001)
        return inForce.filter { before[$0.key] != $0.value }.map(\.value)
    }

    /// The worker has found anew what is in force: each limit begins with one push.
    mutating func beginLimits(now: Now) {
        limits = inForce.compactMapValues(\.perSecond)
            .mapValues { SimulatedLimit(perSecond: $0, now: now.monotonic) }
    }

    // MARK: Pushes

    /// What is in force for pushes to tokens of this class: a drop counts before a pause, a pause
    /// before a limit.
    func action(for tokenClass: TokenClass) -> Restriction.Action? {
        let actions = scopes(of: tokenClass).compactMap { inForce[$0] }
        if actions.contains(.drop) { return .drop }
        return actions.contains(.pause) ? .pause : actions.first
    }

    var areDroppingPushes: Bool {
        [TokenClass.control, .widget, .device].contains { action(for: $0) == .drop }
    }

    /// The narrowest first.
    private func scopes(of tokenClass: TokenClass) -> [Restriction.Scope] {
        let app = SimulationWorker.app
        return [
            .pushes(app: app, tokenClass: tokenClass), .pushes(app: app, tokenClass: nil),
            .pushes(app: nil, tokenClass: tokenClass),
        ]
    }

    /// A push is handed over.
    mutating func sent(to tokenClass: TokenClass) throws(SimulationFailure) {
        let action = action(for: tokenClass)
        try require(action != .pause && action != .drop, "a push that an operator has stopped")
        guard let scope = scopes(of: tokenClass).first(where: { inForce[$0] != nil }) else {
            return
        }
        limits[scope]?.left -= 1
        // Ten tenths of a push are a little less than one.
        try require((limits[scope]?.left ?? 0) >= -1e-9, "more pushes than \(scope) may send")
    }

    // MARK: Events

    func isPaused(topic: String) -> Bool { inForce[.topic(topic)] == .pause }
    func isDropped(topic: String) -> Bool { inForce[.topic(topic)] == .drop }

    func isDropped(subject: String?) -> Bool {
        guard let subject else { return false }
        return inForce[.subject(Array(subject.utf8), app: SimulationWorker.app)] == .drop
    }
}

/// The most that a limit lets go: what it has earned, with a tenth of a second's at once.
private struct SimulatedLimit {
    let perSecond: Int
    /// Above what the worker has by the part of a push that it earns later.
    var left = 1.0
    private var earnedAt: MonotonicTime

    init(perSecond: Int, now: MonotonicTime) {
        self.perSecond = perSecond
        earnedAt = now
    }

    mutating func earn(share: Double, now: MonotonicTime) {
        let rate = Double(perSecond) * share
        let most = max(1, rate / 10)
        left = min(left + (now - earnedAt) / .seconds(1) * rate, most + 1)
        earnedAt = now
    }
}
