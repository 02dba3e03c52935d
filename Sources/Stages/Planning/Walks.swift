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

/// The walks under way: events whose tokens are visited some each turn, because they are many or
/// slots are short. `FanOut` starts walks and asks for each `step`: this decides which tokens are
/// next, and `FanOut` makes their pushes. Bounded: `cursorsMax` walks, each with at most two claims
/// per assignment.
package struct Walks: ~Copyable {
    private var walks: [Walk?] = []
    private var free: [Int] = []
    /// Walks that take turns, oldest first.
    private var order: [Int] = []
    private var turn = 0
    /// Whether walks that have a pace wait, whatever they may visit.
    package var standsStill = false
    private var holds = ClaimPool()
    /// The walks of each subject, in the order in which they began.
    private var bySubject: [SubjectID: [Int]] = [:]
    /// Walks that a plain event can join, by what they ask for.
    private var joinable: [Errand: Int] = [:]
    /// For each subject, how many entries its walks have passed and must still visit. Until then
    /// none of its walks ends.
    private var awaited: [SubjectID: Int] = [:]
    private var started = 0
    /// How far the events have come that go in rounds.
    package private(set) var places = WalkPlaces()
    /// Events whose walk has met every token of the list, and none that they are for.
    private var passedOver: [PassedOver] = []
    private let cursorsMax: Int
    private let byAddress = PassedByAddress()

    /// Events of one topic that no token of their list is for.
    package struct PassedOver: Equatable, Sendable {
        package let subject: SubjectID
        package let topic: Int
        package let count: Int
    }

    private struct Walk {
        /// The walk's number: walks are counted as they begin.
        let number: Int
        /// Whether it has met a token that its events are for.
        var hasFoundToken = false
        /// Until then how many events wait to know, by topic.
        var undecided: [Int: Int] = [:]
        var request: FanOutRequest
        var cursor: LapCursor
        /// Nil for a walk that goes as fast as it can.
        var pace: WalkPace?
        /// Nil for a walk that meets every token in one pass.
        var rounds: WalkRounds?
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

    /// What a walk asks of each token, except for what may differ between events that share the
    /// walk.
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
    package private(set) var payloadWalks = 0
    /// How many walks keep a pace.
    package private(set) var pacedCount = 0
    /// Whether a walk may be given a pace: such walks leave half of the places to others, which are
    /// over in a moment.
    package var mayBePaced: Bool { pacedCount < cursorsMax / 2 }
    /// When a walk may go on that stands still for its pace alone.
    package private(set) var nextPaced = MonotonicTime.distantFuture

    /// Begins a walk, or lets one that is under way answer for this event too. The claim passes to
    /// the walk. Only a plain event can join: one with a payload walks alone. An event that joins
    /// goes on at the walk's pace, so that its own lap takes as long.
    /// - Returns: the walk's index.
    @discardableResult
    package mutating func start(
        _ request: FanOutRequest, count: Int, pace: WalkPace? = nil, rounds: WalkRounds? = nil,
        hold: OffsetClaim, _ tracker: inout OffsetTracker
    ) -> Int {
        let errand = request.payloadType == nil ? Errand(request) : nil
        if let errand, let index = joinable[errand] {
            extend(index, request, hold: hold, &tracker)
            return index
        }
        let cursor = LapCursor(
            count: count, passes: Int(rounds?.length ?? 1), first: Int(rounds?.done ?? 0))
        var walk = Walk(
            number: started, request: request, cursor: cursor, pace: pace, rounds: rounds)
        started += 1
        _ = holds.insert(hold, into: &walk.current)
        let index: Int
        if let row = free.popLast() {
            index = row
            walks[row] = walk
        } else {
            index = walks.count
            walks.append(walk)
        }
        if let errand { joinable[errand] = index } else { payloadWalks += 1 }
        if pace != nil { pacedCount += 1 }
        order.append(index)
        bySubject[request.subject, default: []].append(index)
        return index
    }

    private mutating func extend(
        _ index: Int, _ request: FanOutRequest, hold: OffsetClaim, _ tracker: inout OffsetTracker
    ) {
        walks[index]!.isShared = true
        walks[index]!.cursor.extend()
        let latest = max(walks[index]!.request.expiresAt, request.expiresAt)
        walks[index]!.request.expiresAt = latest
        // A token that the walk comes to now waits for both events, but no longer than the longest
        // delay.
        walks[index]!.request.notBefore = max(
            walks[index]!.request.notBefore, request.notBefore)
        walks[index]!.request.readSequence = request.readSequence
        walks[index]!.nextOldest =
            walks[index]!.nextOldest ?? (request.origin, request.writtenAt)
        if let surplus = holds.insert(hold, into: &walks[index]!.next) { tracker.release(surplus) }
    }

    package enum Step {
        /// The walk at this index must visit these entries of the subject's list next, the last one
        /// first.
        case visit(Range<Int>, walk: Int)
        /// The last walk of this subject has ended.
        case left(SubjectID)
        /// No walk has anything left to do.
        case idle
    }

    /// Takes one step of the walk whose turn it is.
    ///
    /// - Parameters:
    ///   - most: how many entries may be visited, at least 1.
    ///   - tracker: is given back the claims of laps that have ended.
    ///   - bodies: is given back the body of a walk that has ended.
    ///   - now: by which walks keep their pace.
    ///   - count: the number of entries of a subject.
    package mutating func step(
        most: Int, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore,
        now: MonotonicTime = MonotonicTime(nanoseconds: 0), count: (SubjectID) -> Int
    ) -> Step {
        var waiting = 0
        nextPaced = .distantFuture
        while waiting < order.count {
            if turn >= order.count { turn = 0 }
            let index = order[turn]
            let count = count(walks[index]!.request.subject)
            let allowed = allowance(
                of: index, most: most, count: count, now: now)
            if allowed == 0 {
                turn += 1
                waiting += 1
                continue
            }
            switch walks[index]!.step(count: count, most: allowed) {
            case .visit(let positions):
                if walks[index]!.rounds == nil {
                    walks[index]!.pace?.visited(positions.count)
                } else if walks[index]!.isInFirstLap {
                    beginRound(index, &tracker)
                }
                turn += 1
                return .visit(positions, walk: index)
            case .lapEnded:
                passOver(index)
                walks[index]!.hasEndedLap = true
                holds.drain(&walks[index]!.current) { tracker.release($0) }
                walks[index]!.current = walks[index]!.next
                walks[index]!.next = ClaimSet()
                let oldest = walks[index]!.nextOldest.take()
                walks[index]!.request.origin = oldest?.origin
                walks[index]!.request.writtenAt =
                    oldest?.writtenAt ?? WallTime(milliseconds: 0)
            case .finished where awaited[walks[index]!.request.subject] != nil:
                turn += 1
                waiting += 1
            case .finished:
                if let left = finish(index, &tracker, &bodies) { return .left(left) }
            }
        }
        return .idle
    }

    /// What the walk asks for from now on holds its event by a holder of its own.
    private mutating func beginRound(_ index: Int, _ tracker: inout OffsetTracker) {
        let pass = walks[index]!.cursor.pass
        guard walks[index]!.claimedPass != pass else { return }
        walks[index]!.claimedPass = pass
        let rounds = walks[index]!.rounds!
        var claims: [OffsetClaim] = []
        holds.drain(&walks[index]!.current) { claims.append($0) }
        let part = rounds.tokens(ofPass: pass).index
        for claim in claims {
            let round = tracker.split(claim, part: part)
            tracker.release(claim)
            places.begin(part, of: rounds, round, tracker)
            _ = holds.insert(round, into: &walks[index]!.current)
        }
    }

    /// Whether the walk has to meet this entry of its list now: unless it will come to it, or has come
    /// to one that has only moved.
    package func owesNow(
        _ walk: Int, _ token: UnsafeRawBufferPointer, hasOnlyMoved: Bool
    ) -> Bool {
        guard let rounds = walks[walk]!.rounds, walks[walk]!.isInFirstLap else { return true }
        let index = TokenShard.index(of: token, count: rounds.count)
        let now = rounds.tokens(ofPass: walks[walk]!.cursor.pass).index
        return hasOnlyMoved ? index == now : index <= now
    }

    /// The claims of a push to a token that the walk meets out of its order; the push takes them over.
    /// Nil where the walk's own are as good. Otherwise the place must not pass the token before the push
    /// has ended.
    package mutating func claimsOutOfOrder(
        _ walk: Int, _ token: UnsafeRawBufferPointer, _ tracker: inout OffsetTracker
    ) -> [OffsetClaim]? {
        guard let rounds = walks[walk]!.rounds, walks[walk]!.isInFirstLap,
            walks[walk]!.claimedPass >= 0
        else { return nil }
        var claims: [OffsetClaim] = []
        let part = max(TokenShard.index(of: token, count: rounds.count), rounds.first)
        holds.forEach(in: walks[walk]!.current) { claims.append(tracker.split($0, part: part)) }
        for claim in claims { places.begin(part, of: rounds, claim, tracker) }
        holds.forEach(in: walks[walk]!.next) { claim in
            tracker.retain(claim)
            claims.append(claim)
        }
        return claims
    }

    /// Ends the walks that keep a pace and whose claims are all given up: the next owners of their
    /// events go on with them.
    /// - Parameter isGivenUp: whether the claim's partition is no longer ours.
    /// - Returns: how many events had waited to know whether a token is found, by topic.
    package mutating func abandonPaced(_ isGivenUp: (OffsetClaim) -> Bool) -> [Int: Int] {
        var undecided: [Int: Int] = [:]
        guard pacedCount > 0 else { return undecided }
        for index in order where walks[index]!.pace != nil && !walks[index]!.isAbandoned {
            var isWanted = false
            forEachHold(of: index) { if !isGivenUp($0) { isWanted = true } }
            if isWanted { continue }
            undecided.merge(abandon(index), uniquingKeysWith: +)
        }
        return undecided
    }

    /// The walks that are not abandoned.
    package var underWay: [Int] { order.filter { !walks[$0]!.isAbandoned } }

    /// The event of which this walk is one shard; nil where it is none, or is shared with others.
    package func sourceOfShard(_ walk: Int) -> RecordPosition? {
        guard walks[walk]!.request.filter.shard != nil, !walks[walk]!.isShared else { return nil }
        return walks[walk]!.request.origin
    }

    package func isAbandoned(_ walk: Int) -> Bool { walks[walk]!.isAbandoned }

    /// Ends the walk, wherever it is: it visits no more entries, and no event joins it.
    /// - Returns: how many events had waited to know whether a token is found, by topic.
    package mutating func abandon(_ walk: Int) -> [Int: Int] {
        walks[walk]!.isAbandoned = true
        stopJoining(walk)
        defer { walks[walk]!.undecided = [:] }
        return walks[walk]!.undecided
    }

    private mutating func stopJoining(_ index: Int) {
        guard walks[index]!.request.payloadType == nil else { return }
        let errand = Errand(walks[index]!.request)
        if joinable[errand] == index { joinable[errand] = nil }
    }

    // MARK: Whether a token is found

    package func hasFoundToken(_ walk: Int) -> Bool { walks[walk]!.hasFoundToken }

    /// An event of this topic wants to know whether the walk, which has not found a token yet,
    /// does.
    package mutating func await(_ walk: Int, topic: Int) {
        walks[walk]!.undecided[topic, default: 0] += 1
    }

    /// The walk has met a token that its events are for.
    /// - Returns: how many events have waited for that, by topic.
    package mutating func foundToken(_ walk: Int) -> [Int: Int] {
        walks[walk]!.hasFoundToken = true
        defer { walks[walk]!.undecided = [:] }
        return walks[walk]!.undecided
    }

    package var hasPassedOver: Bool { !passedOver.isEmpty }

    /// The events of which this has become known since the last call. Their subjects' numbers hold
    /// until the next step.
    package mutating func takePassedOver() -> [PassedOver] {
        defer { passedOver.removeAll(keepingCapacity: true) }
        return passedOver
    }

    /// The walk has met every token. Whoever joined it on its way asks the same of each.
    private mutating func passOver(_ index: Int) {
        guard !walks[index]!.undecided.isEmpty else { return }
        let subject = walks[index]!.request.subject
        for (topic, count) in walks[index]!.undecided.sorted(by: { $0.key < $1.key }) {
            passedOver.append(PassedOver(subject: subject, topic: topic, count: count))
        }
        walks[index]!.undecided = [:]
    }

    /// How many entries the walk may visit now, as far as its pace is concerned; above zero where a
    /// lap ends, which is no visit.
    private mutating func allowance(
        of index: Int, most: Int, count: Int, now: MonotonicTime
    ) -> Int {
        guard walks[index]!.pace != nil, !walks[index]!.isAbandoned,
            !walks[index]!.cursor.isAtEnd(count: count)
        else { return most }
        if standsStill { return 0 }
        let shards = walks[index]!.rounds.map { Int($0.count / $0.length) } ?? 1
        // A list that has become shorter than the shards are many would give none of them a pace.
        let share = max(1, count / shards)
        let allowed = walks[index]!.pace!.allowance(of: share, now: now)
        if allowed == 0 { nextPaced = min(nextPaced, walks[index]!.pace!.nextAt(of: share)) }
        // Of those that a round looks at few are its own.
        return walks[index]!.rounds == nil || allowed == 0 ? min(most, allowed) : most
    }

    /// The tokens that the walk is to meet in this pass; nil for all.
    package func tokensOfPass(_ walk: Int) -> TokenShard? {
        walks[walk]!.rounds?.tokens(ofPass: walks[walk]!.cursor.pass)
    }

    /// So many of the entries that were looked at were of this pass.
    package mutating func met(_ entries: Int, by walk: Int) { walks[walk]!.pace?.visited(entries) }

    package func request(of walk: Int) -> FanOutRequest { walks[walk]!.request }

    /// The claims that a push made by this walk must take over: those of both laps, older first.
    package func forEachHold(of walk: Int, _ body: (OffsetClaim) -> Void) {
        holds.forEach(in: walks[walk]!.current, body)
        holds.forEach(in: walks[walk]!.next, body)
    }

    /// The walks that must look at an entry which a removal has moved.
    package func walks(of subject: SubjectID) -> [Int] { bySubject[subject] ?? [] }

    /// The first walk of the subject whose number is in `numbers`.
    package func walk(of subject: SubjectID, in numbers: Range<Int>) -> Int? {
        guard !numbers.isEmpty, let rows = bySubject[subject] else { return nil }
        // A binary search: thousands of payloads may walk there, and an entry asks for each in
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

    package func number(of walk: Int) -> Int { walks[walk]!.number }

    /// Adds to the number of entries that the subject's walks must still visit; `count` may be
    /// negative.
    package mutating func awaitVisits(of subject: SubjectID, _ count: Int) {
        let left = awaited[subject, default: 0] + count
        precondition(left >= 0, "fewer than no entries are awaited")
        awaited[subject] = left == 0 ? nil : left
    }

    /// The subjects whose walks look for tokens of this kind and of others, those of older walks
    /// first.
    ///
    /// - Parameter name: the kind's name, for walks that began before the kind had a number.
    package func subjects(naming kind: KindID, name: UnsafeRawBufferPointer) -> [SubjectID] {
        var subjects: [SubjectID] = []
        for index in order {
            let request = walks[index]!.request
            guard request.filter.kinds.count > 1,
                request.filter.kinds.contains(kind) || request.filter.isUnknownKind(name),
                !subjects.contains(request.subject)
            else { continue }
            subjects.append(request.subject)
        }
        return subjects
    }

    package func isWalked(_ subject: SubjectID) -> Bool { bySubject[subject] != nil }

    /// - Returns: the subject, if this was its last walk.
    private mutating func finish(
        _ index: Int, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore
    ) -> SubjectID? {
        passOver(index)
        holds.drain(&walks[index]!.current) { tracker.release($0) }
        holds.drain(&walks[index]!.next) { tracker.release($0) }
        let subject = walks[index]!.request.subject
        bodies.release(walks[index]!.request.body)
        stopJoining(index)
        if walks[index]!.request.payloadType != nil { payloadWalks -= 1 }
        if walks[index]!.pace != nil { pacedCount -= 1 }
        walks[index] = nil
        free.append(index)
        order.remove(at: turn)
        bySubject[subject]!.removeAll { $0 == index }
        guard bySubject[subject]!.isEmpty else { return nil }
        bySubject[subject] = nil
        return subject
    }

    /// Every claim that a walk has; for tests and simulation.
    package func forEachHold(_ body: (OffsetClaim) -> Void) {
        for index in order { forEachHold(of: index, body) }
    }

    package func checkInvariants() {
        precondition(walks.compactMap(\.self).count == order.count, "a walk without a turn")
        precondition(
            order.count { walks[$0]!.request.payloadType != nil } == payloadWalks,
            "the walks of payloads miscount")
        precondition(
            order.count { walks[$0]!.pace != nil } == pacedCount, "the walks with a pace miscount")
        for index in order {
            let subject = walks[index]!.request.subject
            precondition(bySubject[subject]?.contains(index) == true, "a walk without its subject")
            precondition(!walks[index]!.current.isEmpty, "a walk that holds nothing")
        }
        for ofSubject in bySubject.values {
            let numbers = ofSubject.map { walks[$0]!.number }
            precondition(numbers == numbers.sorted(), "a subject's walks are out of order")
        }
    }
}
