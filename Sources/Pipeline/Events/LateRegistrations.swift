// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Remembers the events of the last `registrationGrace`, since they are also owed to tokens that
/// register within that time, and the entries whose pushes wait for a free slot.
struct LateRegistrations: ~Copyable {
    private var recentSubjects: RecentSubjects
    private(set) var recentEvents = RecentEvents()
    var entries: [LateEntry] = []
    var registrations: RecentRegistrations
    var inherited = InheritedNotes()
    private let registrationGrace: Duration
    private let byAddress = PassedByAddress()

    init(settings: PipelineSettings) {
        registrationGrace = settings.sizes.registrationGrace
        recentSubjects = RecentSubjects(
            cells: settings.sizes.recentSubjectCells,
            registrationGrace: settings.sizes.registrationGrace)
        registrations = RecentRegistrations(rowsMax: settings.sizes.recentRegistrationsMax)
    }

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The memory of remembered events in bytes, without their payloads.
    var bytes: Int { recentEvents.bytes }
    var bytesByTopic: [Int] { recentEvents.bytesByTopic }
    var subjectBytes: Int { recentSubjects.bytes }
    var registrationBytes: Int { registrations.bytes }

    // MARK: Events are remembered

    /// An event was read. Of a plain event only the time and the expiry are kept.
    mutating func noteEvent(
        _ request: FanOutRequest, of event: Event, hash: UInt64, _ state: inout PipelineState,
        now: Now
    ) {
        if event.isPlain {
            recentSubjects.changed(hash: hash, expiresAt: request.expiresAt, now: now.monotonic)
        } else {
            recall(request, kinds: event.kinds, hash: hash, &state, now: now)
        }
    }

    @inline(never)
    private mutating func recall(
        _ request: FanOutRequest, kinds: [String], hash: UInt64, _ state: inout PipelineState,
        now: Now
    ) {
        recentEvents.append(
            request, kinds: kinds, hash: hash, now: now.monotonic, bodies: &state.pushes.bodies)
    }

    /// Forgets the events whose grace period is over. Called once a turn.
    mutating func forget(_ state: inout PipelineState, now: Now) {
        guard entries.isEmpty else { return }
        recentEvents.forget(before: now.monotonic - registrationGrace, bodies: &state.pushes.bodies)
    }

    // MARK: Entries come

    /// A record of the registrations topic was applied, or set aside.
    mutating func registrationRead(
        _ registration: StableHash.Value?, partition: Int32, offset: Int64
    ) {
        registrations.applied(registration, partition: partition, offset: offset)
    }

    /// Acts on what a registration has changed in the audience.
    mutating func registrationApplied(
        _ changes: AudienceChanges, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) {
        for moved in changes.moved {
            meetMoved(moved, hasOnlyMoved: true, &fanOut, &state, now: now)
        }
        // A fan-out may have passed the end of its list, where new entries go, while their token stood
        // further down until now, under another registration.
        if !fanOut.underWay.isEmpty {
            for added in changes.subscribed {
                meetMoved(added, &fanOut, &state, now: now)
                if state.audience.scope(of: added.subject) == .kindWide {
                    meetNewKind(added, &fanOut, &state, now: now)
                }
            }
        }
        for token in changes.removedTokens {
            state.tokenRemoved(token)
            drop(token, &fanOut, &state)
        }
        if !state.payloadPushes.isEmpty {
            for token in changes.narrowed { state.narrowed(token, now: now) }
        }
        // Nothing is owed before the first event is read: a replay need not ask.
        if state.sequence > 0 {
            for added in changes.subscribed {
                requestIfRecent(added, &fanOut, &state, now: now)
            }
        }
        state.audience.reclaimRemoved()
    }

    /// Makes fan-outs that may have passed the position of this entry visit it now.
    private mutating func meetMoved(
        _ moved: AudienceChanges.Listed, hasOnlyMoved: Bool = false, _ fanOut: inout FanOut,
        _ state: inout PipelineState, now: Now
    ) {
        guard let last = fanOut.underWay.fanOuts(of: moved.subject).last else { return }
        let late = LateEntry(
            entry: moved.entry, subject: moved.subject, hash: 0, madeAt: now.monotonic,
            fanOuts: 0..<fanOut.underWay.number(of: last) + 1, events: 0..<0,
            hasOnlyMoved: hasOnlyMoved)
        serve(late, &fanOut, &state, now: now)
    }

    /// Makes fan-outs for several kinds visit an entry of one kind's new list. Such an event goes
    /// through a list for each kind. The token may have left another of these lists before the fan-out
    /// there came to it, for this one, which the event has gone through already.
    private mutating func meetNewKind(
        _ added: AudienceChanges.Listed, _ fanOut: inout FanOut, _ state: inout PipelineState,
        now: Now
    ) {
        let app = state.audience.app(of: added.subject)
        let name = state.audience.subjectBytes(of: added.subject)
        for subject in fanOut.underWay.subjects(naming: added.entry.kind, name: name)
        where subject != added.subject && state.audience.scope(of: subject) == .kindWide
            && state.audience.app(of: subject) == app
        {
            var other = added
            other.subject = subject
            meetMoved(other, &fanOut, &state, now: now)
        }
    }

    /// Makes the pushes of recent events that a new entry is owed. Of a plain event only the time
    /// and the expiry are known. Its offset is one of those within their grace period, so the push
    /// holds the oldest of these.
    private mutating func requestIfRecent(
        _ added: AudienceChanges.Listed, _ fanOut: inout FanOut, _ state: inout PipelineState,
        now: Now
    ) {
        let app = state.traits(of: state.audience.route(of: added.entry.token)).app
        let subject = state.audience.subjectBytes(of: added.subject)
        let scope = state.audience.scope(of: added.subject)
        // What an operator drops by now is not told to newcomers either.
        if fanOut.dropped.hasSubjects, scope == .subject,
            fanOut.dropped.isDropped(subject, of: app)
        {
            return
        }
        let hash = state.audience.hash(app, subject, scope)
        let change = recentSubjects.expiry(ofChange: hash, now: now.monotonic)
        let first = recentEvents.first(hash: hash, since: now.monotonic - registrationGrace)
        guard change != nil || first != nil else { return }
        var late = LateEntry(
            entry: added.entry, subject: added.subject, hash: hash, madeAt: now.monotonic,
            fanOuts: 0..<0, events: first.map { $0..<recentEvents.end } ?? 0..<0,
            changeExpiresAt: change)
        late.claims = state.tracker.claimWithinGrace(now: now.monotonic)
        // Every event is past its grace period: the entry is owed nothing.
        if !late.claims.isEmpty { serve(late, &fanOut, &state, now: now) }
    }

    // MARK: Entries are served

    /// Makes the pushes for which no slot was free before.
    mutating func sendOwed(
        _ fanOut: inout FanOut, _ state: inout PipelineState,
        now: Now
    ) {
        while state.freeEventSlots > 0, let late = entries.popLast() {
            fanOut.underWay.awaitVisits(of: late.subject, -1)
            serve(late, &fanOut, &state, now: now)
        }
    }

    mutating func serve(
        _ late: LateEntry, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) {
        var late = late
        if sendFanOuts(to: &late, &fanOut, &state, now: now),
            sendChange(to: &late, &fanOut, &state, now: now),
            sendEvents(to: &late, &fanOut, &state, now: now)
        {
            return state.release(late.claims)
        }
        fanOut.underWay.awaitVisits(of: late.subject, 1)
        // Fan-outs go on until there is a slot.
        late.hasOnlyMoved = false
        entries.append(late)
    }

    // Each of these returns false when a slot was needed and none was free.

    private func sendFanOuts(
        to late: inout LateEntry, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) -> Bool {
        while let running = fanOut.underWay.fanOut(of: late.subject, in: late.fanOuts) {
            let request = fanOut.underWay.request(of: running)
            guard
                fanOut.underWay.isAbandoned(running)
                    || endIfUnsubscribed(request, late, &state, now: now)
                    || !fanOut.underWay.owesNow(
                        running, state.audience.tokenBytes(of: late.entry.token),
                        hasOnlyMoved: late.hasOnlyMoved)
                    || visit(late.entry, running, &fanOut, &state, now: now)
            else { return false }
            late.fanOuts = fanOut.underWay.number(of: running) + 1..<late.fanOuts.upperBound
        }
        return true
    }

    private func visit(
        _ entry: AudienceEntry, _ running: Int, _ fanOut: inout FanOut,
        _ state: inout PipelineState,
        now: Now
    ) -> Bool {
        let request = fanOut.underWay.request(of: running)
        let token = state.audience.tokenBytes(of: entry.token)
        guard let claims = fanOut.underWay.claimsOutOfOrder(running, token, &state.tracker) else {
            return fanOut.visit(entry, request, claims: .fanOut(running), now: now, &state)
        }
        if fanOut.visit(entry, request, claims: .held(claims), now: now, &state) {
            return true
        }
        state.release(claims)
        return false
    }

    private func sendChange(
        to late: inout LateEntry, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) -> Bool {
        guard let expiresAt = late.changeExpiresAt else { return true }
        var change = FanOutRequest(
            subject: late.subject, filter: AudienceFilter(environment: nil),
            expiresAt: expiresAt, origin: state.tracker.position(of: late.claims[0]),
            readSequence: state.sequence, subjectTag: UInt32(truncatingIfNeeded: late.hash))
        // The binding of the event is not known either, so the longest delay applies: rather too
        // late than too early.
        if fanOut.delayMax > .zero { change.notBefore = now.monotonic + fanOut.delayMax }
        guard send(change, to: late, &fanOut, &state, now: now) else { return false }
        late.changeExpiresAt = nil
        return true
    }

    private func sendEvents(
        to late: inout LateEntry, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let route = state.audience.route(of: late.entry.token)
        let app = state.traits(of: route).app
        var next = late.events.isEmpty ? nil : Optional(late.events.lowerBound)
        while let number = next, number < late.events.upperBound {
            let recent = recentEvents[number]
            var request = recent.request
            request.subject = late.subject
            request.subjectTag = UInt32(truncatingIfNeeded: late.hash)
            // The push waited for the registration, not for this worker.
            request.writtenAt = WallTime(milliseconds: 0)
            // A kind that nobody had shown may have come with this very registration.
            state.audience.setKinds(recent.kinds, of: app, in: &request.filter)
            if endIfUnsubscribed(request, late, &state, now: now) {
                // It is counted.
            } else if request.expiresAt > now.monotonic {
                guard send(request, to: late, &fanOut, &state, now: now) else {
                    late.events = number..<late.events.upperBound
                    return false
                }
            } else if request.expiresAt > late.madeAt,
                case .push(let type) = FanOut.fate(
                    for: late.entry, of: request, route: route, state)
            {
                state.endUnqueued(.expired, route, type)
            }
            next = recentEvents.following(number)
        }
        late.events = 0..<0
        return true
    }

    private func send(
        _ owed: FanOutRequest, to late: LateEntry, _ fanOut: inout FanOut,
        _ state: inout PipelineState, now: Now
    ) -> Bool {
        assert(!late.claims.isEmpty, "a late entry holds a claim, so a crash cannot lose its push")
        for claim in late.claims { state.tracker.retain(claim) }
        if fanOut.visit(late.entry, owed, claims: .held(late.claims), now: now, &state) {
            return true
        }
        state.release(late.claims)
        return false
    }
}

extension LateRegistrations {
    /// Every claim that an entry has; for tests and simulation.
    func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for late in entries { late.claims.forEach(body) }
    }

    func checkInvariants() {
        recentEvents.checkInvariants()
        for late in entries {
            precondition(
                late.changeExpiresAt != nil || !late.fanOuts.isEmpty || !late.events.isEmpty,
                "an entry is kept only while it is owed something")
        }
    }
}
