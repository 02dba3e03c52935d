// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

/// Walks through the audiences of events that have many tokens, or came when slots were scarce.
extension FanOut {
    /// Starts a walk, to which the claim and the request's body pass.
    mutating func startWalk(
        _ request: FanOutRequest, count: Int, hold: OffsetClaim, now: Now,
        _ state: inout PipelineState
    ) -> ListOutcome {
        state.audience.setCursor(request.subject, true)
        var request = request
        // A walk may also begin with few tokens, where slots are scarce.
        request.isBulk = count > state.settings.sizes.immediateFanOutMax
        // Only an event of one list can the next owner go on with: a token may change from one list to
        // another.
        let isSole = !hasFurtherLists
        let place = isSole ? placeToResume(hold) : nil
        var rounds =
            isSole ? WalkRounds(of: request.filter.shard, count: count, from: place) : nil
        let pace = pace(of: request, count: count, rounds, now: now, state.settings.live)
        if pace == nil, place == nil { rounds = nil }
        let walk = walks.start(
            request, count: count, pace: pace, rounds: rounds, hold: hold, &state.tracker)
        if state.traces.isFollowing {
            state.traces.walking(
                walks.number(of: walk), of: request.subject, for: request.origin)
        }
        // Whether the owner before has found any is not known: to say that there are none would be a
        // false alarm.
        let isMatched = walks.hasFoundToken(walk) || place != nil
        return isMatched ? .known(.matched) : .walking(walk)
    }

    /// The pace of a large fan-out, where those are spread. Half of the event's life is left for
    /// its last pushes.
    private func pace(
        of request: FanOutRequest, count: Int, _ rounds: WalkRounds?, now: Now,
        _ settings: PipelineSettings.Live
    ) -> WalkPace? {
        guard settings.spread > .zero, count > settings.spreadAbove, walks.mayBePaced else {
            return nil
        }
        let life = (request.expiresAt - now.monotonic) / 2
        // The owners before have used up their share of both.
        let window = min(settings.spread, rounds.map { life / $0.left } ?? life)
        return window > .zero ? WalkPace(window: window, now: now.monotonic) : nil
    }

    /// Moves the events that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    mutating func advance(
        steps: Int, now: Now, _ state: inout PipelineState
    ) -> Int {
        var made = 0
        let left = state.freeEventSlots - slotsForWalks(state)
        slotsTakenAtOnce = 0
        while made < steps, state.freeEventSlots > left {
            let most = min(Self.prefetchedEntries, steps - made, state.freeEventSlots - left)
            walks.standsStill = state.drain != nil
            let step = nextStep(
                most: most, now: now, &state.tracker, &state.pushes.bodies, state.audience)
            if walks.hasPassedOver { countPassedOver(state, now: now) }
            switch step {
            case .idle:
                return made
            case .left(let subject):
                state.audience.setCursor(subject, false)
            case .visit(let positions, let walk):
                made += positions.count
                visit(positions, walk: walk, now: now, &state)
            }
        }
        return made
    }

    /// A walk that is spread is not over when a drain is: the next owner goes on with it, from the
    /// round that has not ended.
    private mutating func nextStep(
        most: Int, now: Now, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore,
        _ audience: borrowing Audience
    ) -> Walks.Step {
        walks.step(most: most, &tracker, &bodies, now: now.monotonic) { audience.count($0) }
    }

    /// Ends the walks that are spread and hold no offset of ours any more. Whether their events are
    /// for anybody is not known: to say that they are for none would be a false alarm.
    mutating func abandonWalks(_ state: borrowing PipelineState) {
        let undecided = walks.abandonPaced { state.tracker.position(of: $0) == nil }
        for (topic, count) in undecided {
            tally.decided(count)
            tally.matched(count, topic: topic)
        }
    }

    /// Ends the walks through what an operator drops from now on: the tokens that they have not come to
    /// are sent nothing. What was asked for before goes on.
    mutating func abandonDropped(_ state: inout PipelineState) {
        guard dropped.hasSubjects || dropped.hasTopics, !walks.isEmpty else { return }
        for walk in walks.underWay where isDropped(walk, state) {
            for (topic, count) in walks.abandon(walk) {
                tally.decided(count)
                tally.dropped(count, topic: topic)
            }
            state.counters.subjectsDropped += 1
        }
    }

    /// Whether all that the walk answers for is dropped. Events of several topics may share a walk.
    private func isDropped(_ walk: Int, _ state: borrowing PipelineState) -> Bool {
        let subject = walks.request(of: walk).subject
        if dropped.hasSubjects, !state.audience.isKindWide(subject),
            dropped.isDropped(
                state.audience.subjectBytes(of: subject), of: state.audience.app(of: subject))
        {
            return true
        }
        guard dropped.hasTopics else { return false }
        if let source = walks.sourceOfShard(walk), dropped.topics[Int(source.topic)] { return true }
        var (isDropped, isWanted) = (false, false)
        walks.forEachHold(of: walk) { hold in
            // Of an event whose partition is not ours any more its next owner decides.
            guard let position = state.tracker.position(of: hold) else { return }
            if dropped.topics[Int(position.topic)] { isDropped = true } else { isWanted = true }
        }
        return isDropped && !isWanted
    }

    /// Counts the events of walks that met every token of their list, and none that they are for.
    @inline(never)
    private mutating func countPassedOver(_ state: borrowing PipelineState, now: Now) {
        for passed in walks.takePassedOver() {
            let subject =
                state.audience.isKindWide(passed.subject)
                ? UnsafeRawBufferPointer(start: nil, count: 0)
                : state.audience.subjectBytes(of: passed.subject)
            tally.decided(passed.count)
            tally.reachedNobody(
                .passedOver, subject, topic: passed.topic, count: passed.count, now: now)
        }
    }

    private mutating func visit(
        _ positions: Range<Int>, walk: Int, now: Now, _ state: inout PipelineState
    ) {
        let request = walks.request(of: walk)
        let start = state.traces.isFollowing ? state.askedTally : nil
        let asked = state.pushesAsked
        state.audience.prefetch(request.subject, entries: positions)
        let tokens = walks.tokensOfPass(walk)
        var met = 0
        for index in positions.reversed() {
            let entry = state.audience.entry(request.subject, at: index)
            if let tokens {
                guard tokens.contains(state.audience.tokenBytes(of: entry.token)) else { continue }
                met += 1
            }
            let visited = visit(entry, request, claims: .walk(walk), now: now, &state)
            precondition(visited, "there was a free slot for each")
        }
        if met > 0 { walks.met(met, by: walk) }
        if !walks.hasFoundToken(walk),
            state.pushesAsked != asked || Self.isForAny(positions, request, state)
        {
            for (topic, count) in walks.foundToken(walk) {
                tally.decided(count)
                tally.matched(count, topic: topic)
            }
        }
        if let start { state.traces.planned(state.askedTally, since: start, for: request.origin) }
    }

    /// When a walk may go on that keeps a pace; one that waits for slots waits for a fact.
    func nextPaced(_ state: borrowing PipelineState) -> MonotonicTime {
        slotsForWalks(state) > 0 ? walks.nextPaced : .distantFuture
    }

    /// How many slots walks may take now. Where events have taken slots that are kept for them,
    /// walks take as many, so that neither waits for the other to end.
    private func slotsForWalks(_ state: borrowing PipelineState) -> Int {
        let free = state.freeEventSlots
        return min(free, max(free - state.settings.sizes.slotsKeptForEvents, slotsTakenAtOnce))
    }
}
