// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
package import Intake
internal import Ledger
internal import Planning
package import PushModel

extension PushPipeline {
    /// A record of an events topic was read. Whatever it holds, it ends: fanned out, counted, or as a
    /// dead letter; its offset is held until then.
    ///
    /// - Parameters:
    ///   - header: looks up a header of the record; called only where a binding needs it.
    ///   - headers: all of them; called only for the dead letter of a record that cannot be read.
    package mutating func eventRecord(
        _ record: EventRecord, track: TrackID, offset: Int64, now: Now,
        header: EventRecord.HeaderLookup,
        headers: () -> [(name: String, value: [UInt8])] = { [] }
    ) {
        if !foreseen.isEmpty { fetchForeseen() }
        counters.events += 1
        sequence += 1
        ledger.received(track, offset: offset, now: now.monotonic)
        let place = tracks[Int(track.rawValue)]!
        let position = RecordPosition(
            topic: place.topic, partition: place.partition, offset: offset)
        do throws(UnreadableRecord) {
            let event = try intake.decode(record, now: now.wall, header: header)
            if event.expiresAt > now.wall {
                fanOut(event, track: track, position: position, now: now)
            } else {
                countExpired(event, writtenAt: record.timestamp, now: now)
            }
        } catch {
            counters.eventsUnreadable += 1
            writeUnreadable(
                record, headers(), error, hold: ledger.hold(track), at: position, now: now)
        }
    }

    /// A record with this key is about to be read: the processor may fetch what it will look up. Only
    /// a hint, which costs a hash and spares the misses of the index one after the other; what is
    /// foreseen is fetched when the first of them is read, so say it of several.
    package mutating func foresee(key: UnsafeRawBufferPointer, binding: Int) {
        guard foreseen.count < Audience.prefetchMax, let app = intake.appOfKeys(binding) else {
            return
        }
        foreseen.append(audience.hash(app, key, isKindWide: false))
    }

    private mutating func fetchForeseen() {
        audience.prefetch(subjects: foreseen)
        foreseen.removeAll(keepingCapacity: true)
    }

    /// The operator asked for this record not to be read (`kafka.skip`).
    package mutating func skippedRecord(track: TrackID, offset: Int64, now: Now) {
        counters.eventsSkipped += 1
        ledger.received(track, offset: offset, now: now.monotonic)
    }

    private mutating func fanOut(
        _ event: Event, track: TrackID, position: RecordPosition, now: Now
    ) {
        var isMatched = false
        if !event.subject.isEmpty {
            let list = subjectList(of: event)
            isMatched = fanOut(event, to: list, track, position, now: now)
        } else {
            for name in event.kinds {
                let list = kindList(of: event, name: name)
                isMatched = fanOut(event, to: list, track, position, now: now) || isMatched
            }
        }
        if !isMatched { counters.eventsUnmatched += 1 }
    }

    private mutating func countExpired(_ event: Event, writtenAt: WallTime, now: Now) {
        counters.eventsExpired += 1
        if event.expiresAt <= writtenAt {
            expiredEvents.beforeWritten += 1
        } else {
            expiredEvents.whileWaiting += 1
            // A broker that keeps no times leaves it below zero.
            guard writtenAt.milliseconds >= 0 else { return }
            expiredEvents.waitMax = max(expiredEvents.waitMax, now.wall - writtenAt)
        }
    }

    /// Since the last call.
    package mutating func takeExpiredEvents() -> ExpiredEvents {
        defer { expiredEvents = ExpiredEvents() }
        return expiredEvents
    }

    /// Tokens that an event goes through, and the hash by which it is remembered.
    struct EventList {
        /// Nil where nobody is on it.
        var subject: SubjectID?
        var hash: UInt64
        /// Nil for a subject's list.
        var kind: String?
    }

    func subjectList(of event: Event) -> EventList {
        let hash = audience.hash(event.app, event.subject, isKindWide: false)
        return EventList(
            subject: audience.subject(event.app, event.subject, hash: hash), hash: hash)
    }

    func kindList(of event: Event, name: String) -> EventList {
        var text = name
        return text.withUTF8 { utf8 in
            let utf8 = UnsafeRawBufferPointer(utf8)
            let hash = audience.hash(event.app, utf8, isKindWide: true)
            return EventList(
                subject: audience.kindWide(event.app, utf8, hash: hash), hash: hash, kind: name)
        }
    }

    /// What the event asks of each token of the list. Whoever takes it owes its body a release.
    mutating func request(
        _ event: Event, of list: EventList, position: RecordPosition, now: Now
    ) -> FanOutRequest {
        var request = FanOutRequest(
            subject: list.subject?.rawValue ?? 0,
            filter: AudienceFilter(
                environment: event.environment, classes: event.classes,
                kinds: numbers(ofKinds: event.kinds, of: event.app), shard: event.shard?.tokens),
            expiresAt: now.monotonic(at: event.expiresAt), origin: position,
            readSequence: sequence, subjectTag: UInt32(truncatingIfNeeded: list.hash))
        if hasDelays, event.delay > .zero { request.notBefore = now.monotonic + event.delay }
        if let shard = event.shard { setSource(shard, of: &request, now: now) }
        request.priority = event.priority
        request.expiration = event.expiration
        if let payload = event.payload {
            keep(payload, collapseID: event.collapseID, in: &request, now: now)
        }
        return request
    }

    /// - Returns: whether anybody shows the subject, under one of the kinds if the event names some.
    private mutating func fanOut(
        _ event: Event, to list: EventList, _ track: TrackID, _ position: RecordPosition, now: Now
    ) -> Bool {
        let request = request(event, of: list, position: position, now: now)
        let hash = list.hash
        if event.isPlain {
            recentSubjects.changed(
                hash: hash, expiresAt: request.expiresAt, now: now.monotonic)
        } else {
            recall(request, kinds: event.kinds, hash: hash, now: now)
        }
        let count = isForNobody(request) ? 0 : list.subject.map { audience.count($0) } ?? 0
        if count == 0 {
            pushes.bodies.release(request.body)
        } else if count > settings.splitAbove, split(event, list: list, track, position, now: now) {
            pushes.bodies.release(request.body)
        } else if count <= settings.immediateFanOutMax, freeEventSlots >= count {
            fanOutAtOnce(request, count: count, hold: ledger.hold(track), now: now)
        } else {
            audience.setCursor(SubjectID(rawValue: request.subject), true)
            fanOuts.start(request, count: count, hold: ledger.hold(track))
            giveBack()
        }
        return count > 0
    }

    /// The event names kinds, and no registration of its app shows any of them.
    private func isForNobody(_ request: FanOutRequest) -> Bool {
        !request.filter.kinds.isEmpty
            && request.filter.kinds.allSatisfy { $0 == KindID.unknown.rawValue }
    }

    @inline(never)
    private mutating func recall(
        _ request: FanOutRequest, kinds: [String], hash: UInt64, now: Now
    ) {
        recentEvents.append(
            request, kinds: kinds, hash: hash, now: now.monotonic, bodies: &pushes.bodies)
    }

    private mutating func fanOutAtOnce(
        _ request: FanOutRequest, count: Int, hold: Hold, now: Now
    ) {
        let subject = SubjectID(rawValue: request.subject)
        let free = freeEventSlots
        defer { slotsTakenAtOnce += free - freeEventSlots }
        for index in 0..<count {
            if count > 1, index % Self.prefetchedEntries == 0 {
                audience.prefetch(
                    subject, entries: index..<min(index + Self.prefetchedEntries, count))
            }
            let entry = audience.entry(subject, at: index)
            let visited = visit(entry, request, claims: .event(hold), now: now)
            precondition(visited, "there was a free slot for each")
        }
        ledger.release(hold)
        pushes.bodies.release(request.body)
    }

    /// So many tokens are visited together: enough for their cache misses to overlap, few enough for
    /// none of them to be evicted meanwhile, and for walks to take turns.
    private static let prefetchedEntries = 16

    /// Moves the events that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    package mutating func advanceFanOuts(steps: Int, now: Now) -> Int {
        var made = 0
        let left = freeEventSlots - slotsForWalks
        slotsTakenAtOnce = 0
        while made < steps, freeEventSlots > left {
            let most = min(Self.prefetchedEntries, steps - made, freeEventSlots - left)
            let step = fanOuts.step(most: most) { audience.count(SubjectID(rawValue: $0)) }
            guard case .visit(let positions, let walk) = step else { break }
            made += positions.count
            let request = fanOuts.request(of: walk)
            let subject = SubjectID(rawValue: request.subject)
            audience.prefetch(subject, entries: positions)
            for index in positions.reversed() {
                let entry = audience.entry(subject, at: index)
                let visited = visit(entry, request, claims: .walk(walk), now: now)
                precondition(visited, "there was a free slot for each")
            }
        }
        giveBack()
        return made
    }

    // MARK: One token

    /// Which offsets a push made now has to hold.
    enum Claims {
        /// That of the event itself.
        case event(Hold)
        /// Those of the events that this walk answers for.
        case walk(Int)
        /// These, which are the push's already.
        case held([Hold])
    }

    /// Pushes to one token of an event's audience, if the event is for it. False when that needs a
    /// slot and none is free.
    mutating func visit(
        _ entry: AudienceEntry, _ request: FanOutRequest, claims: Claims, now: Now
    ) -> Bool {
        let token = entry.token
        let lane = audience.lane(of: token)
        guard let type = pushType(for: entry, of: request, lane: lane) else {
            drop(claims)
            return true
        }
        if audience.isSuppressed(token) {
            counters.suppressed += 1
            drop(claims)
            return true
        }
        var push = PushRequest(
            token: token.rawValue, lane: lane, type: type,
            priority: settings.wireDefaults.priority(type, asked: request.priority),
            expiration: request.expiration ?? settings.wireDefaults.expiration(type),
            expiresAt: request.expiresAt, origin: request.origin,
            readSequence: request.readSequence, subject: request.subject,
            subjectTag: request.subjectTag, heldSince: now.monotonic)
        push.coalescingKey = request.coalescingKey
        push.body = request.body
        push.notBefore = request.notBefore
        return place(push, claims: claims, now: now)
    }

    /// Joins the push that the token has already, or makes one. False when that needs a slot and
    /// none of its share is free.
    mutating func place(_ push: PushRequest, claims: Claims, now: Now) -> Bool {
        let token = TokenID(rawValue: push.token)
        if let slot = existingPush(for: token, key: push.coalescingKey) {
            counters.pushesCoalesced += 1
            claim(claims, for: slot, push, isNew: false)
            return true
        }
        if push.coalescingKey != 0, push.past == nil, !payloadOrder.isEmpty, isOutdated(push) {
            counters.pushesCoalesced += 1
            drop(claims)
            return true
        }
        guard (push.past == nil ? freeEventSlots : pushes.freeSlots) > 0 else { return false }
        counters.pushesQueued += 1
        let slot = pushes.queue(push, now: now.monotonic)
        claim(claims, for: slot, push, isNew: true)
        remember(slot, for: token, key: push.coalescingKey)
        return true
    }

    /// The type of the push that this entry gets; nil when the event is not for it.
    func pushType(
        for entry: AudienceEntry, of request: FanOutRequest, lane: LaneID
    ) -> PushType? {
        guard request.filter.shard?.contains(audience.tokenBytes(of: entry.token)) ?? true else {
            return nil
        }
        // Field by field: a copy of either would retain its arrays.
        let tokenClass = lanes[Int(lane.rawValue)].tokenClass
        if let environment = request.filter.environment,
            environment != lanes[Int(lane.rawValue)].environment
        {
            return nil
        }
        guard request.filter.classes.contains(tokenClass) else { return nil }
        if !request.filter.kinds.isEmpty, !request.filter.kinds.contains(entry.kind.rawValue) {
            return nil
        }
        if let type = request.payloadType { return tokenClass == .device ? type : nil }
        return entry.hearsChanges ? tokenClass.changeType : nil
    }

    /// - Parameter isNew: the push was made of this very request, and has nothing to merge.
    private mutating func claim(
        _ claims: Claims, for slot: UInt32, _ push: PushRequest, isNew: Bool
    ) {
        switch claims {
        case .event(let hold):
            ledger.retain(hold)
            if isNew {
                pushes.claim(hold, for: slot)
            } else {
                _ = pushes.join(slot, push, hold: hold)
            }
        case .walk(let walk):
            fanOuts.forEachHold(of: walk) { hold in
                ledger.retain(hold)
                if isNew {
                    pushes.claim(hold, for: slot)
                } else {
                    _ = pushes.join(slot, push, hold: hold)
                }
            }
        case .held(let holds):
            for hold in holds { _ = pushes.join(slot, push, hold: hold) }
        }
        if !pushes.released.isEmpty { giveBack() }
    }

    /// The push is not made: claims that were taken for it alone go back.
    private mutating func drop(_ claims: Claims) {
        guard case .held(let holds) = claims else { return }
        for hold in holds { ledger.release(hold) }
    }

    /// Returns what planning no longer needs: claims, bodies, and the marks on walked subjects.
    mutating func giveBack() {
        for hold in pushes.released { ledger.release(hold) }
        pushes.released.removeAll(keepingCapacity: true)
        for hold in fanOuts.released { ledger.release(hold) }
        fanOuts.released.removeAll(keepingCapacity: true)
        for body in fanOuts.bodiesToRelease { pushes.bodies.release(body) }
        fanOuts.bodiesToRelease.removeAll(keepingCapacity: true)
        for subject in fanOuts.leftSubjects where !fanOuts.isWalked(subject) {
            audience.setCursor(SubjectID(rawValue: subject), false)
        }
        fanOuts.leftSubjects.removeAll(keepingCapacity: true)
    }

    // MARK: Which push a token has

    func existingPush(for token: TokenID, key: UInt64) -> UInt32? {
        if key != 0 { return existingPayloadPush(for: token, key: key) }
        let cell = audience.pending(token)
        return cell == 0 ? nil : cell - 1
    }

    private mutating func remember(_ slot: UInt32, for token: TokenID, key: UInt64) {
        if key != 0 { return rememberPayloadPush(slot, for: token, key: key) }
        audience.setPending(token, slot + 1)
    }

    /// The push in this slot has ended; its token has none of that key any more.
    mutating func forget(_ slot: UInt32, of token: TokenID, key: UInt64) {
        if key != 0 { return forgetPayloadPush(slot) }
        audience.setPending(token, 0)
    }

    // Apart, since what they need of the stack would be made ready for each push.

    @inline(never)
    private func existingPayloadPush(for token: TokenID, key: UInt64) -> UInt32? {
        payloadPushes.slot(token: token.rawValue, key: key)
    }

    @inline(never)
    private mutating func rememberPayloadPush(_ slot: UInt32, for token: TokenID, key: UInt64) {
        payloadPushes.insert(slot, token: token.rawValue, key: key)
    }

    @inline(never)
    private mutating func forgetPayloadPush(_ slot: UInt32) {
        payloadPushes.remove(slot)
    }

    // MARK: Reading an event

    func numbers(ofKinds names: [String], of app: AppID) -> [UInt16] {
        names.isEmpty
            ? [] : names.map { (audience.kind(app, named: $0) ?? .unknown).rawValue }
    }

    @inline(never)
    private mutating func keep(
        _ payload: EventPayload, collapseID: String?, in request: inout FanOutRequest, now: Now
    ) {
        // A step back of the clock must not make the newer payload the older one.
        payloadsReadAt = max(payloadsReadAt, now.wall)
        let identity = PayloadIdentity(
            type: payload.type, collapseID: collapseID, body: payload.body,
            event: originHash(request.origin))
        request.payloadType = payload.type
        request.coalescingKey = identity.coalescingKey
        request.body = pushes.bodies.insert(
            payload.body, collapseID: identity.collapseID, readAt: payloadsReadAt,
            origin: request.origin, isReplaceable: collapseID != nil)
    }

    /// Identifies an event across workers and restarts.
    func originHash(_ origin: RecordPosition) -> StableHash.Value {
        StableHash.event(
            topicSeed: originTopics.seeds[Int(origin.topic)], partition: origin.partition,
            offset: origin.offset)
    }
}
