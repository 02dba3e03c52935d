// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import Ledger
package import PushModel

/// What an event asks of every token that it reaches.
package struct FanOutRequest {
    package var subject: SubjectID
    package var filter: AudienceFilter
    /// The event's `apns-priority`; nil takes the push type's own.
    package var priority: UInt8?
    /// How `apns-expiration` is filled in; nil takes the push type's own rule.
    package var expiration: ExpirationRule?
    package var expiresAt: MonotonicTime
    package var notBefore = MonotonicTime(nanoseconds: .min)
    /// The push type of the event's payload; nil for "look again".
    package private(set) var payloadType: PushType?
    /// The classes of token that the payload is for; none without a payload.
    package private(set) var payloadClasses = TokenClassSet(rawValue: 0)
    /// Whether the payload starts a Live Activity, and so is for push-to-start tokens alone: never
    /// for channels, which only activities that run subscribe to.
    package private(set) var startsActivity = false
    package var coalescingKey: UInt64 = 0
    package var body = BodyID.none
    /// The oldest event that asks for this; nil where it is no longer known.
    package var origin: RecordPosition?
    /// When `origin` was written; 0 where that is not known.
    package var writtenAt = WallTime(milliseconds: 0)
    package var readSequence: UInt64
    /// Whether its tokens are so many that their pushes must not stand in the way of others.
    package var isBulk = false
    /// Some bits of the subject's hash, which show whether `subject` has come to name another one.
    package var subjectTag: UInt32

    package init(
        subject: SubjectID, filter: AudienceFilter, expiresAt: MonotonicTime,
        origin: RecordPosition?, readSequence: UInt64, subjectTag: UInt32
    ) {
        self.subject = subject
        self.filter = filter
        self.expiresAt = expiresAt
        self.origin = origin
        self.readSequence = readSequence
        self.subjectTag = subjectTag
    }

    package mutating func ask(for payload: EventPayload) {
        ask(for: payload.type, startsActivity: payload.activity?.event == .start)
    }

    package mutating func ask(for type: PushType, startsActivity: Bool) {
        payloadType = type
        payloadClasses = type.classes
        self.startsActivity = startsActivity
    }
}

/// The fan-outs under way: events whose tokens are visited some each turn, because they are many or
/// slots are short. `FanOut` starts fan-outs and asks for each `step`: this decides which tokens are
/// next, and `FanOut` makes their pushes. Bounded: `cursorsMax` fan-outs, each with at most two claims
/// per assignment.
package struct FanOutTable: ~Copyable {
    private var rows: [Row?] = []
    private var free: [Int] = []
    /// Fan-outs that take turns, oldest first.
    private var order: [Int] = []
    private var turn = 0
    /// Whether fan-outs that are spread wait, whatever they may visit.
    package var standsStill = false
    private var claimPool = ClaimPool()
    /// The fan-outs of each subject, in the order in which they began.
    private var bySubject: [SubjectID: [Int]] = [:]
    /// Fan-outs that a plain event can join, by what they ask for.
    private var joinable: [Errand: Int] = [:]
    /// For each subject, how many entries its fan-outs have passed and must still visit. Until then
    /// none of its fan-outs ends.
    private var awaited: [SubjectID: Int] = [:]
    private var started = 0
    /// How far the events have come that go in rounds.
    package private(set) var progress = SpreadProgress()
    /// Events whose fan-out has met every token of the list, and none that they are for.
    private var passedOver: [PassedOver] = []
    private let cursorsMax: Int
    private let byAddress = PassedByAddress()

    /// Events of one topic that no token of their list is for.
    package struct PassedOver: Equatable, Sendable {
        package let subject: SubjectID
        package let topic: Int
        package let count: Int
    }

    private struct Row {
        /// The fan-out's number: fan-outs are counted as they begin.
        let number: Int
        /// Whether it has met a token that its events are for.
        var hasFoundToken = false
        /// Until then how many events wait to know, by topic.
        var undecided: [Int: Int] = [:]
        var request: FanOutRequest
        var cursor: LapCursor
        /// Nil for a fan-out that goes as fast as it can.
        var spread: FanOutSpread?
        /// Nil for a fan-out that meets every token in one pass.
        var rounds: FanOutRounds?
        /// The pass whose claim is in `current`.
        var claimedPass = -1
        var hasEndedLap = false
        /// Whether it visits no more entries, wherever it is.
        var isAbandoned = false
        /// Whether a further event has joined it.
        var isShared = false
        var current = ClaimSet()
        var next = ClaimSet()
        /// The oldest event that only the next lap answers for, and when it was written.
        var nextOldest: (origin: RecordPosition?, writtenAt: WallTime)?

        /// Whether it is in the first lap, which is of the first event alone, and goes in rounds.
        var isInFirstLap: Bool { rounds != nil && !hasEndedLap }

        mutating func step(count: Int, most: Int) -> LapCursor.Step {
            isAbandoned ? .finished : cursor.step(count: count, most: most)
        }
    }

    /// What a fan-out asks of each token, except for what may differ between events that share the
    /// fan-out.
    private struct Errand: Hashable {
        let subject: SubjectID
        let filter: AudienceFilter
        let priority: UInt8?
        let expiration: ExpirationRule?
        /// Whether the event has a delay. An event that may go at once does not wait for one that
        /// must not.
        let isDelayed: Bool

        init(_ request: FanOutRequest) {
            subject = request.subject
            filter = request.filter
            priority = request.priority
            expiration = request.expiration
            isDelayed = request.notBefore.nanoseconds > .min
        }
    }

    package init(cursorsMax: Int) { self.cursorsMax = cursorsMax }

    package var count: Int { order.count }
    package var isFull: Bool { order.count >= cursorsMax }
    package var isEmpty: Bool { order.isEmpty }
    /// How many events with a payload are under way.
    package private(set) var payloadFanOuts = 0
    /// How many fan-outs are spread.
    package private(set) var spreadCount = 0
    /// Whether a fan-out may be spread: such fan-outs leave half of the table to others, which are
    /// over in a moment.
    package var maySpread: Bool { spreadCount < cursorsMax / 2 }
    /// When a fan-out may go on that stands still for its spread alone.
    package private(set) var nextSpread = MonotonicTime.distantFuture

    /// Begins a fan-out, or lets one that is under way answer for this event too. The claim passes to
    /// the fan-out. Only a plain event can join: one with a payload is fanned out alone. An event that joins
    /// goes on at the fan-out's speed, so that its own lap takes as long.
    /// - Returns: the fan-out's index.
    @discardableResult
    package mutating func start(
        _ request: FanOutRequest, count: Int, spread: FanOutSpread? = nil,
        rounds: FanOutRounds? = nil,
        claim: OffsetClaim, _ tracker: inout OffsetTracker
    ) -> Int {
        let errand = request.payloadType == nil ? Errand(request) : nil
        if let errand, let index = joinable[errand] {
            extend(index, request, claim: claim, &tracker)
            return index
        }
        let cursor = LapCursor(
            count: count, passes: Int(rounds?.length ?? 1), first: Int(rounds?.done ?? 0))
        var added = Row(
            number: started, request: request, cursor: cursor, spread: spread, rounds: rounds)
        started += 1
        _ = claimPool.insert(claim, into: &added.current)
        let index: Int
        if let row = free.popLast() {
            index = row
            rows[row] = added
        } else {
            index = rows.count
            rows.append(added)
        }
        if let errand { joinable[errand] = index } else { payloadFanOuts += 1 }
        if spread != nil { spreadCount += 1 }
        order.append(index)
        bySubject[request.subject, default: []].append(index)
        return index
    }

    private mutating func extend(
        _ index: Int, _ request: FanOutRequest, claim: OffsetClaim, _ tracker: inout OffsetTracker
    ) {
        rows[index]!.isShared = true
        rows[index]!.cursor.extend()
        let latest = max(rows[index]!.request.expiresAt, request.expiresAt)
        rows[index]!.request.expiresAt = latest
        // A token that the fan-out comes to now waits for both events, but no longer than the longest
        // delay.
        rows[index]!.request.notBefore = max(
            rows[index]!.request.notBefore, request.notBefore)
        rows[index]!.request.readSequence = request.readSequence
        rows[index]!.nextOldest =
            rows[index]!.nextOldest ?? (request.origin, request.writtenAt)
        if let surplus = claimPool.insert(claim, into: &rows[index]!.next) {
            tracker.release(surplus)
        }
    }

    package enum Step {
        /// The fan-out at this index must visit these entries of the subject's list next, the last one
        /// first.
        case visit(Range<Int>, fanOut: Int)
        /// The last fan-out of this subject has ended.
        case left(SubjectID)
        /// No fan-out has anything left to do.
        case idle
    }

    /// Takes one step of the fan-out whose turn it is.
    ///
    /// - Parameters:
    ///   - most: how many entries may be visited, at least 1.
    ///   - tracker: is given back the claims of laps that have ended.
    ///   - bodies: is given back the body of a fan-out that has ended.
    ///   - now: by which fan-outs are spread.
    ///   - count: the number of entries of a subject.
    package mutating func step(
        most: Int, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore,
        now: MonotonicTime = MonotonicTime(nanoseconds: 0), count: (SubjectID) -> Int
    ) -> Step {
        var waiting = 0
        nextSpread = .distantFuture
        while waiting < order.count {
            if turn >= order.count { turn = 0 }
            let index = order[turn]
            let count = count(rows[index]!.request.subject)
            let allowed = allowance(
                of: index, most: most, count: count, now: now)
            if allowed == 0 {
                turn += 1
                waiting += 1
                continue
            }
            switch rows[index]!.step(count: count, most: allowed) {
            case .visit(let positions):
                if rows[index]!.rounds == nil {
                    rows[index]!.spread?.visited(positions.count)
                } else if rows[index]!.isInFirstLap {
                    beginRound(index, &tracker)
                }
                turn += 1
                return .visit(positions, fanOut: index)
            case .lapEnded:
                passOver(index)
                rows[index]!.hasEndedLap = true
                claimPool.drain(&rows[index]!.current) { tracker.release($0) }
                rows[index]!.current = rows[index]!.next
                rows[index]!.next = ClaimSet()
                let oldest = rows[index]!.nextOldest.take()
                rows[index]!.request.origin = oldest?.origin
                rows[index]!.request.writtenAt =
                    oldest?.writtenAt ?? WallTime(milliseconds: 0)
            case .finished where awaited[rows[index]!.request.subject] != nil:
                turn += 1
                waiting += 1
            case .finished:
                if let left = finish(index, &tracker, &bodies) { return .left(left) }
            }
        }
        return .idle
    }

    /// What the fan-out asks for from now on holds its event by a claim of its own.
    private mutating func beginRound(_ index: Int, _ tracker: inout OffsetTracker) {
        let pass = rows[index]!.cursor.pass
        guard rows[index]!.claimedPass != pass else { return }
        rows[index]!.claimedPass = pass
        let rounds = rows[index]!.rounds!
        var claims: [OffsetClaim] = []
        claimPool.drain(&rows[index]!.current) { claims.append($0) }
        let part = rounds.tokens(ofPass: pass).index
        for claim in claims {
            let round = tracker.split(claim, part: part)
            tracker.release(claim)
            progress.begin(part, of: rounds, round, tracker)
            _ = claimPool.insert(round, into: &rows[index]!.current)
        }
    }

    /// Whether the fan-out has to meet this entry of its list now: unless it will come to it, or has come
    /// to one that has only moved.
    package func owesNow(
        _ fanOut: Int, _ token: UnsafeRawBufferPointer, hasOnlyMoved: Bool
    ) -> Bool {
        guard let rounds = rows[fanOut]!.rounds, rows[fanOut]!.isInFirstLap else { return true }
        let index = TokenShard.index(of: token, count: rounds.count)
        let now = rounds.tokens(ofPass: rows[fanOut]!.cursor.pass).index
        return hasOnlyMoved ? index == now : index <= now
    }

    /// The claims of a push to a token that the fan-out meets out of its order; the push takes them over.
    /// Nil where the fan-out's own are as good. Otherwise the progress must not pass the token before
    /// the push has ended.
    package mutating func claimsOutOfOrder(
        _ fanOut: Int, _ token: UnsafeRawBufferPointer, _ tracker: inout OffsetTracker
    ) -> [OffsetClaim]? {
        guard let rounds = rows[fanOut]!.rounds, rows[fanOut]!.isInFirstLap,
            rows[fanOut]!.claimedPass >= 0
        else { return nil }
        var claims: [OffsetClaim] = []
        let part = max(TokenShard.index(of: token, count: rounds.count), rounds.first)
        claimPool.forEach(in: rows[fanOut]!.current) {
            claims.append(tracker.split($0, part: part))
        }
        for claim in claims { progress.begin(part, of: rounds, claim, tracker) }
        claimPool.forEach(in: rows[fanOut]!.next) { claim in
            tracker.retain(claim)
            claims.append(claim)
        }
        return claims
    }

    /// Ends the fan-outs that are spread and whose claims are all given up: the next owners of their
    /// events go on with them.
    /// - Parameter isGivenUp: whether the claim's partition is no longer ours.
    /// - Returns: how many events had waited to know whether a token is found, by topic.
    package mutating func abandonSpread(_ isGivenUp: (OffsetClaim) -> Bool) -> [Int: Int] {
        var undecided: [Int: Int] = [:]
        guard spreadCount > 0 else { return undecided }
        for index in order where rows[index]!.spread != nil && !rows[index]!.isAbandoned {
            var isWanted = false
            forEachClaim(of: index) { if !isGivenUp($0) { isWanted = true } }
            if isWanted { continue }
            undecided.merge(abandon(index), uniquingKeysWith: +)
        }
        return undecided
    }

    /// The fan-outs that are not abandoned.
    package var active: [Int] { order.filter { !rows[$0]!.isAbandoned } }

    /// The event of which this fan-out is one shard; nil where it is none, or is shared with others.
    package func sourceOfShard(_ fanOut: Int) -> RecordPosition? {
        guard rows[fanOut]!.request.filter.shard != nil, !rows[fanOut]!.isShared else { return nil }
        return rows[fanOut]!.request.origin
    }

    package func isAbandoned(_ fanOut: Int) -> Bool { rows[fanOut]!.isAbandoned }

    /// Ends the fan-out, wherever it is: it visits no more entries, and no event joins it.
    /// - Returns: how many events had waited to know whether a token is found, by topic.
    package mutating func abandon(_ fanOut: Int) -> [Int: Int] {
        rows[fanOut]!.isAbandoned = true
        stopJoining(fanOut)
        defer { rows[fanOut]!.undecided = [:] }
        return rows[fanOut]!.undecided
    }

    private mutating func stopJoining(_ index: Int) {
        guard rows[index]!.request.payloadType == nil else { return }
        let errand = Errand(rows[index]!.request)
        if joinable[errand] == index { joinable[errand] = nil }
    }

    // MARK: Whether a token is found

    package func hasFoundToken(_ fanOut: Int) -> Bool { rows[fanOut]!.hasFoundToken }

    /// An event of this topic wants to know whether the fan-out, which has not found a token yet,
    /// does.
    package mutating func await(_ fanOut: Int, topic: Int) {
        rows[fanOut]!.undecided[topic, default: 0] += 1
    }

    /// The fan-out has met a token that its events are for.
    /// - Returns: how many events have waited for that, by topic.
    package mutating func foundToken(_ fanOut: Int) -> [Int: Int] {
        rows[fanOut]!.hasFoundToken = true
        defer { rows[fanOut]!.undecided = [:] }
        return rows[fanOut]!.undecided
    }

    package var hasPassedOver: Bool { !passedOver.isEmpty }

    /// The events of which this has become known since the last call. Their subjects' numbers hold
    /// until the next step.
    package mutating func takePassedOver() -> [PassedOver] {
        defer { passedOver.removeAll(keepingCapacity: true) }
        return passedOver
    }

    /// The fan-out has met every token. Whoever joined it on its way asks the same of each.
    private mutating func passOver(_ index: Int) {
        guard !rows[index]!.undecided.isEmpty else { return }
        let subject = rows[index]!.request.subject
        for (topic, count) in rows[index]!.undecided.sorted(by: { $0.key < $1.key }) {
            passedOver.append(PassedOver(subject: subject, topic: topic, count: count))
        }
        rows[index]!.undecided = [:]
    }

    /// How many entries the fan-out may visit now, as far as its spread is concerned; above zero where a
    /// lap ends, which is no visit.
    private mutating func allowance(
        of index: Int, most: Int, count: Int, now: MonotonicTime
    ) -> Int {
        guard rows[index]!.spread != nil, !rows[index]!.isAbandoned,
            !rows[index]!.cursor.isAtEnd(count: count)
        else { return most }
        if standsStill { return 0 }
        let shards = rows[index]!.rounds.map { Int($0.count / $0.length) } ?? 1
        // A list that has become shorter than the shards are many would give none of them a step.
        let share = max(1, count / shards)
        let allowed = rows[index]!.spread!.allowance(of: share, now: now)
        if allowed == 0 { nextSpread = min(nextSpread, rows[index]!.spread!.nextAt(of: share)) }
        // Of those that a round looks at few are its own.
        return rows[index]!.rounds == nil || allowed == 0 ? min(most, allowed) : most
    }

    /// The tokens that the fan-out is to meet in this pass; nil for all.
    package func tokensOfPass(_ fanOut: Int) -> TokenShard? {
        rows[fanOut]!.rounds?.tokens(ofPass: rows[fanOut]!.cursor.pass)
    }

    /// So many of the entries that were looked at were of this pass.
    package mutating func met(_ entries: Int, by fanOut: Int) {
        rows[fanOut]!.spread?.visited(entries)
    }

    package func request(of fanOut: Int) -> FanOutRequest { rows[fanOut]!.request }

    /// The claims that a push made by this fan-out must take over: those of both laps, older first.
    package func forEachClaim(of fanOut: Int, _ body: (OffsetClaim) -> Void) {
        claimPool.forEach(in: rows[fanOut]!.current, body)
        claimPool.forEach(in: rows[fanOut]!.next, body)
    }

    /// The fan-outs that must look at an entry which a removal has moved.
    package func fanOuts(of subject: SubjectID) -> [Int] { bySubject[subject] ?? [] }

    /// The first fan-out of the subject whose number is in `numbers`.
    package func fanOut(of subject: SubjectID, in numbers: Range<Int>) -> Int? {
        guard !numbers.isEmpty, let rows = bySubject[subject] else { return nil }
        // A binary search: thousands of payloads may be fanned out there, and an entry asks for each in
        // turn.
        var (first, end) = (0, rows.count)
        while first < end {
            let middle = (first + end) / 2
            if number(of: rows[middle]) < numbers.lowerBound {
                first = middle + 1
            } else {
                end = middle
            }
        }
        guard first < rows.count, number(of: rows[first]) < numbers.upperBound else { return nil }
        return rows[first]
    }

    package func number(of fanOut: Int) -> Int { rows[fanOut]!.number }

    /// Adds to the number of entries that the subject's fan-outs must still visit; `count` may be
    /// negative.
    package mutating func awaitVisits(of subject: SubjectID, _ count: Int) {
        let left = awaited[subject, default: 0] + count
        precondition(left >= 0, "the number of entries still to visit is at least 0")
        awaited[subject] = left == 0 ? nil : left
    }

    /// The subjects whose fan-outs look for tokens of this kind and of others, those of older fan-outs
    /// first.
    ///
    /// - Parameter name: the kind's name, for fan-outs that began before the kind had a number.
    package func subjects(naming kind: KindID, name: UnsafeRawBufferPointer) -> [SubjectID] {
        var subjects: [SubjectID] = []
        for index in order {
            let request = rows[index]!.request
            guard request.filter.kinds.count > 1,
                request.filter.kinds.contains(kind) || request.filter.isUnknownKind(name),
                !subjects.contains(request.subject)
            else { continue }
            subjects.append(request.subject)
        }
        return subjects
    }

    package func isFanningOut(_ subject: SubjectID) -> Bool { bySubject[subject] != nil }

    /// - Returns: the subject, if this was its last fan-out.
    private mutating func finish(
        _ index: Int, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore
    ) -> SubjectID? {
        passOver(index)
        claimPool.drain(&rows[index]!.current) { tracker.release($0) }
        claimPool.drain(&rows[index]!.next) { tracker.release($0) }
        let subject = rows[index]!.request.subject
        bodies.release(rows[index]!.request.body)
        stopJoining(index)
        if rows[index]!.request.payloadType != nil { payloadFanOuts -= 1 }
        if rows[index]!.spread != nil { spreadCount -= 1 }
        rows[index] = nil
        free.append(index)
        order.remove(at: turn)
        bySubject[subject]!.removeAll { $0 == index }
        guard bySubject[subject]!.isEmpty else { return nil }
        bySubject[subject] = nil
        return subject
    }

    /// Every claim that a fan-out has; for tests and simulation.
    package func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for index in order { forEachClaim(of: index, body) }
    }

    package func checkInvariants() {
        precondition(rows.compactMap(\.self).count == order.count, "each fan-out has one turn")
        precondition(
            order.count { rows[$0]!.request.payloadType != nil } == payloadFanOuts,
            "the count of payload fan-outs is that of the rows with a payload type")
        precondition(
            order.count { rows[$0]!.spread != nil } == spreadCount,
            "the count of spread fan-outs is that of the rows with a spread")
        for index in order {
            let subject = rows[index]!.request.subject
            precondition(
                bySubject[subject]?.contains(index) == true,
                "each fan-out is listed under its subject")
            precondition(!rows[index]!.current.isEmpty, "each fan-out holds at least one claim")
        }
        for ofSubject in bySubject.values {
            let numbers = ofSubject.map { rows[$0]!.number }
            precondition(
                numbers == numbers.sorted(),
                "a subject's fan-outs are listed in the order of their numbers")
        }
    }
}
