// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

/// Fan-outs of events that have many tokens, or came when slots were scarce.
extension FanOut {
    /// Starts a fan-out, to which the claim and the request's body pass.
    mutating func startFanOut(
        _ request: FanOutRequest, count: Int, claim: OffsetClaim, now: Now,
        _ state: inout PipelineState
    ) -> ListOutcome {
        state.audience.setCursor(request.subject, true)
        var request = request
        // A fan-out may also begin with few tokens, where slots are scarce.
        request.isBulk = count > state.settings.sizes.immediateFanOutMax
        // Only an event of one list can the next owner go on with: a token may change from one list to
        // another.
        let isSole = !hasFurtherLists
        let progress = isSole ? progressToResume(claim) : nil
        var rounds =
            isSole ? FanOutRounds(of: request.filter.shard, count: count, from: progress) : nil
        let spread = spread(of: request, count: count, rounds, now: now, state.settings.live)
        if spread == nil, progress == nil { rounds = nil }
        let fanOut = underWay.start(
            request, count: count, spread: spread, rounds: rounds, claim: claim, &state.tracker)
        if state.traces.isFollowing {
            state.traces.fanningOut(
                underWay.number(of: fanOut), of: request.subject, for: request.origin)
        }
        // Whether the owner before has found any is not known: to say that there are none would be a
        // false alarm.
        let isMatched = underWay.hasFoundToken(fanOut) || progress != nil
        return isMatched ? .known(.matched) : .fanningOut(fanOut)
    }

    /// How a large fan-out is spread, where those are. Half of the event's life is left for
    /// its last pushes.
    private func spread(
        of request: FanOutRequest, count: Int, _ rounds: FanOutRounds?, now: Now,
        _ settings: PipelineSettings.Live
    ) -> FanOutSpread? {
        guard settings.spread > .zero, count > settings.spreadAbove, underWay.maySpread else {
            return nil
        }
        let life = (request.expiresAt - now.monotonic) / 2
        // The owners before have used up their share of both.
        let window = min(settings.spread, rounds.map { life / $0.left } ?? life)
        return window > .zero ? FanOutSpread(window: window, now: now.monotonic) : nil
    }

    /// Moves the events that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    mutating func advance(
        steps: Int, now: Now, _ state: inout PipelineState
    ) -> Int {
        var made = 0
        let left = state.freeEventSlots - slotsForFanOuts(state)
        slotsTakenAtOnce = 0
        while made < steps, state.freeEventSlots > left {
            let most = min(Self.prefetchedEntries, steps - made, state.freeEventSlots - left)
            underWay.standsStill = state.drain != nil
            let step = nextStep(
                most: most, now: now, &state.tracker, &state.pushes.bodies, state.audience)
            if underWay.hasPassedOver { countPassedOver(state, now: now) }
            switch step {
            case .idle:
                return made
            case .left(let subject):
                state.audience.setCursor(subject, false)
            case .visit(let positions, let fanOut):
                made += positions.count
                visit(positions, fanOut: fanOut, now: now, &state)
            }
        }
        return made
    }

    /// A fan-out that is spread is not over when a drain is: the next owner goes on with it, from the
    /// round that has not ended.
    private mutating func nextStep(
        most: Int, now: Now, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore,
        _ audience: borrowing Audience
    ) -> FanOutTable.Step {
        underWay.step(most: most, &tracker, &bodies, now: now.monotonic) { audience.count($0) }
    }

    /// Ends the fan-outs that are spread and hold no offset of ours any more. Whether their events are
    /// for anybody is not known: to say that they are for none would be a false alarm.
    mutating func abandonFanOuts(_ state: borrowing PipelineState) {
        let undecided = underWay.abandonSpread { state.tracker.position(of: $0) == nil }
        for (topic, count) in undecided {
            tally.decided(count)
            tally.matched(count, topic: topic)
        }
    }

    /// Ends the fan-outs of what an operator drops from now on: the tokens that they have not come to
    /// are sent nothing. What was asked for before goes on.
    mutating func abandonDropped(_ state: inout PipelineState) {
        guard dropped.hasSubjects || dropped.hasTopics, !underWay.isEmpty else { return }
        for fanOut in underWay.active where isDropped(fanOut, state) {
            for (topic, count) in underWay.abandon(fanOut) {
                tally.decided(count)
                tally.dropped(count, topic: topic)
            }
            state.counters.subjectsDropped += 1
        }
    }

    /// Whether all that the fan-out answers for is dropped. Events of several topics may share a fan-out.
    private func isDropped(_ fanOut: Int, _ state: borrowing PipelineState) -> Bool {
        let subject = underWay.request(of: fanOut).subject
        if dropped.hasSubjects, state.audience.scope(of: subject) == .subject,
            dropped.isDropped(
                state.audience.subjectBytes(of: subject), of: state.audience.app(of: subject))
        {
            return true
        }
        guard dropped.hasTopics else { return false }
        if let source = underWay.sourceOfShard(fanOut), dropped.topics[Int(source.topic)] {
            return true
        }
        var (isDropped, isWanted) = (false, false)
        underWay.forEachClaim(of: fanOut) { claim in
            // Of an event whose partition is not ours any more its next owner decides.
            guard let position = state.tracker.position(of: claim) else { return }
            if dropped.topics[Int(position.topic)] { isDropped = true } else { isWanted = true }
        }
        return isDropped && !isWanted
    }

    /// Counts the events of fan-outs that met every token of their list, and none that they are for.
    @inline(never)
    private mutating func countPassedOver(_ state: borrowing PipelineState, now: Now) {
        for passed in underWay.takePassedOver() {
            let subject =
                state.audience.scope(of: passed.subject) == .subject
                ? state.audience.subjectBytes(of: passed.subject)
                : UnsafeRawBufferPointer(start: nil, count: 0)
            tally.decided(passed.count)
            tally.reachedNobody(
                .passedOver, subject, topic: passed.topic, count: passed.count, now: now)
        }
    }

    private mutating func visit(
        _ positions: Range<Int>, fanOut: Int, now: Now, _ state: inout PipelineState
    ) {
        let request = underWay.request(of: fanOut)
        let start = state.traces.isFollowing ? state.askedTally : nil
        let asked = state.pushesAsked
        state.audience.prefetch(request.subject, entries: positions)
        let tokens = underWay.tokensOfPass(fanOut)
        var met = 0
        for index in positions.reversed() {
            let entry = state.audience.entry(request.subject, at: index)
            if let tokens {
                guard tokens.contains(state.audience.tokenBytes(of: entry.token)) else { continue }
                met += 1
            }
            let visited = visit(entry, request, claims: .fanOut(fanOut), now: now, &state)
            precondition(visited, "there is a free slot for each entry of the range")
        }
        if met > 0 { underWay.met(met, by: fanOut) }
        if !underWay.hasFoundToken(fanOut),
            state.pushesAsked != asked || Self.isForAny(positions, request, state)
        {
            for (topic, count) in underWay.foundToken(fanOut) {
                tally.decided(count)
                tally.matched(count, topic: topic)
            }
        }
        if let start { state.traces.planned(state.askedTally, since: start, for: request.origin) }
    }

    /// When a fan-out may go on that is spread; one that waits for slots waits for a fact.
    func nextSpread(_ state: borrowing PipelineState) -> MonotonicTime {
        slotsForFanOuts(state) > 0 ? underWay.nextSpread : .distantFuture
    }

    /// How many slots fan-outs may take now. Where events have taken slots that are kept for them,
    /// fan-outs take as many, so that neither waits for the other to end.
    private func slotsForFanOuts(_ state: borrowing PipelineState) -> Int {
        let free = state.freeEventSlots
        return min(free, max(free - state.settings.sizes.slotsKeptForEvents, slotsTakenAtOnce))
    }
}
