// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// What has come of an event on one list, or on several.
enum ListOutcome {
    case known(EventTally.Outcome)
    /// A fan-out of this index goes through the list, and has met no token yet that the event is for.
    case fanningOut(Int)

    /// What came of the event on these lists together.
    func joined(with other: ListOutcome) -> ListOutcome {
        // Each fan-out knows of its own list alone, and whether any of several has found a token is not
        // followed: to say that none has would be a false alarm.
        if case (.fanningOut, .fanningOut) = (self, other) { return .known(.matched) }
        return other.rank > rank ? other : self
    }

    private var rank: Int {
        switch self {
        case .known(.split): 5
        case .known(.matched): 4
        case .fanningOut: 3
        case .known(.passedOver): 2
        case .known(.dropped): 1
        case .known: 0
        }
    }
}

/// Makes the pushes of an event: reads the record (`EventDecoder`), looks up its tokens
/// (`Audience`), and makes a push for each or joins the one that waits (`PushTable`). A few tokens
/// are visited at once, many in turns (`FanOutTable`); an event of very many is written again as
/// shards.
///
/// `PushPipeline` calls it for each record, and once a turn to move the fan-outs on.
struct FanOut: ~Copyable {
    /// Events that are on their way through their lists.
    var underWay: FanOutTable
    var decoder: EventDecoder
    /// The events that were read, and what came of each.
    var tally: EventTally
    /// What operators have decided about events.
    var dropped: DroppedEvents
    /// The last events that were withheld because of their many tokens and have not come back, the
    /// newest last.
    var withheld: [WithheldEvent] = []
    /// Hashes of subjects that records about to be read will ask for.
    private(set) var prefetched: [UInt64] = []
    /// How many slots events have taken since fan-outs last advanced.
    var slotsTakenAtOnce = 0
    /// The event that is being read, if it goes on where the owner before was.
    var resumption: Resumption?
    /// Whether the event that is being read goes through several lists, or may.
    var hasFurtherLists = false
    /// Who asks for most pushes.
    var demand = DemandTally()
    /// When the last event with a payload was read.
    private var payloadsReadAt = WallTime(milliseconds: 0)
    /// The longest delay of any binding.
    let delayMax: Duration
    /// Whether any binding has a delay. Comparing durations would cost a plain event more than all
    /// else about delays.
    private let hasDelays: Bool
    private let byAddress = PassedByAddress()

    init(bindings: [TopicBinding], decoder: consuming EventDecoder, settings: PipelineSettings) {
        precondition(settings.sizes.immediateFanOutMax > 0, "an event may have at least one token")
        self.decoder = decoder
        underWay = FanOutTable(cursorsMax: settings.sizes.fanOutsMax)
        tally = EventTally(topics: bindings.count)
        dropped = DroppedEvents(topics: bindings.count)
        delayMax = bindings.map(\.delay).max() ?? .zero
        hasDelays = delayMax > .zero
    }

    // MARK: Records are read

    /// Notes that a record with this key is about to be read. When the first record is read, the
    /// processor fetches what all that were noted will look up.
    mutating func prefetch(
        key: UnsafeRawBufferPointer, binding: Int, _ state: borrowing PipelineState
    ) {
        guard prefetched.count < Audience.prefetchMax, let app = decoder.appOfKeys(binding) else {
            return
        }
        prefetched.append(state.audience.hash(app, key, .subject))
    }

    /// Fetches what records that were noted will look up.
    mutating func prefetchSubjects(_ state: inout PipelineState) {
        state.audience.prefetch(subjects: prefetched)
        prefetched.removeAll(keepingCapacity: true)
    }

    /// Reads a record of an events topic: it is fanned out or counted, and its offset is held until
    /// that has ended. Throws for one that cannot be read, is withheld, or is left out.
    mutating func read(
        _ record: EventRecord, _ read: RecordRead, header: EventRecord.HeaderLookup,
        _ state: inout PipelineState, _ late: inout LateRegistrations
    ) throws(UnreadableRecord) {
        let now = read.now
        if dropped.hasTopics, dropped.topics[record.binding] {
            return tally.ended(.dropped, topic: record.binding)
        }
        if late.inherited.isAwaitingAny,
            let told = late.told(read.id, offset: read.position.offset, state.audience)
        {
            guard let progress = told.progress else {
                return try remember(
                    record, RememberedRead(read: read, newcomers: told.newcomers), header: header,
                    &state, &late)
            }
            resumption = Resumption(
                epoch: read.id.epoch, offset: read.position.offset, progress: progress,
                newcomers: told.newcomers)
        }
        let event = try decoder.event(of: record, now: now.wall, header: header)
        state.witness.read(event.writtenAt, now: now)
        guard event.expiresAt > now.wall else {
            if state.traces.isOn, let traced = trace(event, record.timestamp, read, &state) {
                state.traces.read(.expired, traced)
            }
            if state.canary.isOn, event.id != nil {
                note(event, read.position, &state)
                state.canaryRead(.known(.expired), at: read.position)
            }
            return tally.expired(
                event, writtenAt: record.timestamp, topic: record.binding, now: now)
        }
        if dropped.hasTopics, isOfDroppedTopic(event, state) {
            return tally.ended(.dropped, topic: record.binding)
        }
        // Before it is traced: a withheld event is traced as a letter, and must not be drawn twice.
        if state.settings.live.fanOutMax < .max {
            try checkBound(event, at: read.position, now: now, header: header, state)
        }
        var traced: RecordPosition?
        if state.traces.isOn { traced = trace(event, record.timestamp, read, &state) }
        let outcome = fanOut(event, read, &state, &late)
        if state.canary.isReading { state.canaryRead(outcome, at: read.position) }
        if case .known(.matched) = outcome {
            tally.ended(.matched, topic: record.binding)
        } else {
            if let traced { state.traces.read(outcome, traced) }
            note(outcome, of: event, topic: record.binding, now: now)
        }
    }

    // Not inlined: nearly every event is matched, and would otherwise pay for its size.
    @inline(never)
    mutating func note(
        _ outcome: ListOutcome, of event: Event, topic: Int, now: Now
    ) {
        // Examples are for everybody to see: an installation is a part of a key.
        let nobody = UnsafeRawBufferPointer(start: nil, count: 0)
        let subject = event.scope == .subject ? event.subject : nobody
        switch outcome {
        case .known(.unmatched):
            tally.reachedNobody(.unmatched, subject, topic: topic, now: now)
        case .known(.passedOver):
            tally.reachedNobody(.passedOver, subject, topic: topic, now: now)
        case .known(let outcome): tally.ended(outcome, topic: topic)
        case .fanningOut(let fanOut):
            tally.wait()
            underWay.await(fanOut, topic: topic)
        }
    }

    mutating func fanOut(
        _ event: Event, _ read: RecordRead, _ state: inout PipelineState,
        _ late: inout LateRegistrations
    ) -> ListOutcome {
        guard !event.subject.isEmpty, event.allSubjects.isEmpty else {
            return fanOutSeveral(event, read, &state, &late)
        }
        let list = EventList(subjectOf: event, state)
        if drops(event, &state) { return .known(.dropped) }
        let request = request(
            event, of: list, position: read.position, now: read.now, &state)
        return fanOut(event, ListRequest(request: request, list: list), read, &state, &late)
    }

    /// Fans out an event that may go through several lists: of several subjects, or of whole kinds.
    /// They share its request, and with it one body.
    // Not inlined: most events have one subject.
    @inline(never)
    private mutating func fanOutSeveral(
        _ event: Event, _ read: RecordRead, _ state: inout PipelineState,
        _ late: inout LateRegistrations
    ) -> ListOutcome {
        hasFurtherLists = !event.hasOneList
        defer { hasFurtherLists = false }
        let shared = request(event, of: .none, position: read.position, now: read.now, &state)
        var outcome = ListOutcome.known(.unmatched)
        for subject in event.allSubjects {
            let part = event.about(subject)
            let ofPart =
                drops(part, &state)
                ? .known(.dropped)
                : fanOutList(
                    part, shared.on(EventList(subjectOf: part, state)), read, &state, &late)
            outcome = outcome.joined(with: ofPart)
        }
        let kinds = event.isAppWide ? state.audience.kindNames(of: event.app) : event.kinds
        for kind in kinds where event.subject.isEmpty {
            let list = EventList(kind: kind, of: event, state)
            outcome = outcome.joined(
                with: fanOutList(event, shared.on(list), read, &state, &late))
        }
        state.pushes.bodies.release(shared.body)
        return outcome
    }

    /// - Parameter ask: its body is shared with other lists.
    // Not inlined, since what it calls is.
    @inline(never)
    private mutating func fanOutList(
        _ event: Event, _ ask: ListRequest, _ read: RecordRead, _ state: inout PipelineState,
        _ late: inout LateRegistrations
    ) -> ListOutcome {
        state.pushes.bodies.retain(ask.request.body)
        return fanOut(event, ask, read, &state, &late)
    }

    /// Whether an operator drops the event of this subject, which is counted.
    @inline(__always)
    private func drops(_ event: Event, _ state: inout PipelineState) -> Bool {
        guard dropped.hasSubjects, dropped.isDropped(event) else { return false }
        state.counters.subjectsDropped += 1
        return true
    }

    // Nearly every event has one list, and would otherwise pay for a call with large arguments.
    @inline(__always)
    private mutating func fanOut(
        _ event: Event, _ ask: ListRequest, _ read: RecordRead, _ state: inout PipelineState,
        _ late: inout LateRegistrations
    ) -> ListOutcome {
        let (request, list, now) = (ask.request, ask.list, read.now)
        let start = state.traces.isFollowing ? state.askedTally : nil
        late.noteEvent(request, of: event, hash: list.hash, &state, now: now)
        let count = state.audience.count(onList: list)
        var outcome = ListOutcome.known(.matched)
        if count == 0 || isForNobody(request) {
            state.pushes.bodies.release(request.body)
            outcome = .known(count == 0 ? .unmatched : .passedOver)
        } else if count > state.settings.live.splitAbove, !isResumed(read.id, read.position),
            split(event, ask, read, &state)
        {
            state.pushes.bodies.release(request.body)
            outcome = .known(.split)
        } else if count <= state.settings.sizes.immediateFanOutMax, state.freeEventSlots >= count {
            tellDemand(of: event, to: list, count, read.position, now: now)
            let asked = state.pushesAsked
            fanOutAtOnce(
                request, count: count, claim: claim(read.id, for: request, &state), now: now, &state
            )
            if state.pushesAsked == asked, !Self.isForAny(0..<count, request, state) {
                outcome = .known(.passedOver)
            }
        } else {
            tellDemand(of: event, to: list, count, read.position, now: now)
            if resumption != nil { forgetProgress(unlessNewcomersAreKnownOf: list.subject) }
            let isResumed = isResumed(read.id, read.position)
            outcome = startFanOut(
                request, count: count, claim: claim(read.id, for: request, &state), now: now, &state
            )
            if isResumed {
                tellNewcomers(of: event, ask, read, &state, &late)
            }
        }
        if let start { state.traces.planned(state.askedTally, since: start, for: request.origin) }
        return outcome
    }

    /// An event that this worker sends to a list of so many; what is split is told by those that read
    /// its shards.
    @inline(__always)
    private mutating func tellDemand(
        of event: Event, to list: EventList, _ count: Int, _ position: RecordPosition, now: Now
    ) {
        demand.left -= count
        if demand.left <= 0 { countDemand(of: event, to: list, count, position, now: now) }
    }

    // Not inlined: to ask for the shard in line has the whole event copied.
    @inline(never)
    private mutating func countDemand(
        of event: Event, to list: EventList, _ count: Int, _ position: RecordPosition, now: Now
    ) {
        demand.look(
            at: FrequentSubjects.Entry(
                subject: list.subject, tag: UInt32(truncatingIfNeeded: list.hash), app: event.app,
                count: 0, topic: position.topic, audience: count),
            shards: Int(event.shard?.tokens.count ?? 1), now: now.monotonic)
    }

    /// Whether the event names kinds of which no registration of its app shows any.
    private func isForNobody(_ request: FanOutRequest) -> Bool {
        !request.filter.kinds.isEmpty && request.filter.kinds.allSatisfy { $0 == .unknown }
    }

    /// Whether the event is for any of these entries: then it is matched, though they have no push
    /// for it, such as a suppressed token. The entries of other shards count too, since no shard
    /// knows what the others have.
    // Not inlined: it is asked only where no push was made or joined.
    @inline(never)
    static func isForAny(
        _ positions: Range<Int>, _ request: FanOutRequest, _ state: borrowing PipelineState
    ) -> Bool {
        var request = request
        request.filter.shard = nil
        for position in positions {
            let entry = state.audience.entry(request.subject, at: position)
            let route = state.audience.route(of: entry.token)
            if case .push = fate(for: entry, of: request, route: route, state) { return true }
        }
        return false
    }

    // MARK: What an event asks

    /// What the event asks of each token of the list. The caller must release the request's body.
    mutating func request(
        _ event: Event, of list: EventList, position: RecordPosition?, now: Now,
        _ state: inout PipelineState
    ) -> FanOutRequest {
        var request = FanOutRequest(
            subject: list.subject,
            filter: AudienceFilter(
                environment: event.environment, classes: event.classes,
                shard: event.shard?.tokens),
            expiresAt: now.monotonic(at: event.expiresAt), origin: position,
            readSequence: state.sequence, subjectTag: UInt32(truncatingIfNeeded: list.hash))
        if !event.kinds.isEmpty {
            state.audience.setKinds(event.kinds, of: event.app, in: &request.filter)
        }
        if hasDelays, event.delay > .zero { request.notBefore = now.monotonic + event.delay }
        request.writtenAt = event.writtenAt
        if let shard = event.shard { setSource(shard, of: &request, now: now, &state) }
        if event.id != nil || event.traceparent != nil { note(event, request.origin, &state) }
        request.priority = event.priority
        request.expiration = event.expiration
        if let payload = event.payload {
            keep(payload, of: event, in: &request, now: now, &state)
        }
        return request
    }

    @inline(never)
    private mutating func keep(
        _ payload: EventPayload, of event: Event, in request: inout FanOutRequest, now: Now,
        _ state: inout PipelineState
    ) {
        // A step back of the clock must not make the newer payload the older one.
        payloadsReadAt = max(payloadsReadAt, now.wall)
        let identity = PayloadIdentity(
            payload, collapseID: event.collapseID, event: state.originHash(request.origin))
        request.ask(for: payload)
        request.coalescingKey = identity.coalescingKey
        request.body = state.pushes.bodies.insert(
            payload.body, collapseID: identity.collapseID, readAt: payloadsReadAt,
            activity: payload.activity, origin: request.origin,
            isReplaceable: identity.isReplaceable)
        // A token that shows several of the subjects has one push, which is owed as long as it shows
        // any of them.
        if event.allSubjects.isEmpty, !event.subject.isEmpty {
            state.pushes.bodies.add(event.scope, event.subject, to: request.body)
        }
        for subject in event.allSubjects {
            state.pushes.bodies.add(.subject, subject, to: request.body)
        }
    }

    // MARK: At once

    // Not inlined, since `visit` is inlined into it.
    @inline(never)
    private mutating func fanOutAtOnce(
        _ request: FanOutRequest, count: Int, claim: OffsetClaim, now: Now,
        _ state: inout PipelineState
    ) {
        let free = state.freeEventSlots
        for index in 0..<count {
            if count > 1, index % Self.prefetchedEntries == 0 {
                state.audience.prefetch(
                    request.subject,
                    entries: index..<min(index + Self.prefetchedEntries, count))
            }
            let entry = state.audience.entry(request.subject, at: index)
            let visited = visit(
                entry, request, claims: .event(claim), now: now, &state)
            precondition(visited, "there is a free slot for each entry of the subject")
        }
        slotsTakenAtOnce += free - state.freeEventSlots
        state.tracker.release(claim)
        state.pushes.bodies.release(request.body)
    }

    /// How many tokens are visited together: enough for their cache misses to overlap, few enough
    /// that none is evicted meanwhile and that fan-outs take turns.
    static let prefetchedEntries = 16

    func checkInvariants() { underWay.checkInvariants() }
}
