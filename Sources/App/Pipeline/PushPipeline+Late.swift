// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

/// An entry of a subject's list to which pushes are owed that found no free slot: those of walks that
/// have passed its place, and those of events that were read just before its registration. It says
/// which, by number, and not each by itself: walks do not end and recent events are not forgotten
/// while it waits. So its size does not grow with their number, and since no registration is read
/// meanwhile there are no more of these than one registration changes.
struct LateEntry {
    let entry: AudienceEntry
    let subject: SubjectID
    let hash: UInt64
    /// What has expired since was owed.
    let madeAt: MonotonicTime
    /// Of walks, by number.
    var walks: Range<Int>
    /// Of recent events, by number.
    var events: Range<Int>
    /// A plain event that is owed, until then.
    var changeExpiresAt: MonotonicTime?
    /// Offsets of the recent events, which have settled by now for others.
    var holds: [Hold] = []
}

extension PushPipeline {
    /// This entry stands where walks may have passed: they visit it now.
    mutating func meetMovedEntry(_ moved: AudienceChanges.Listed, now: Now) {
        let last = fanOuts.walks(of: moved.subject.rawValue).last
        guard let last else { return }
        serve(
            LateEntry(
                entry: moved.entry, subject: moved.subject, hash: 0, madeAt: now.monotonic,
                walks: 0..<fanOuts.number(of: last) + 1, events: 0..<0), now: now)
    }

    /// An event is owed also to a token that registered up to `settle` after it. Of a plain one only
    /// the time and the expiry are known, but its offset is among the unsettled ones, and the push
    /// holds the oldest of those.
    mutating func requestIfRecent(_ added: AudienceChanges.Listed, now: Now) {
        let app = lanes[Int(audience.lane(of: added.entry.token).rawValue)].app
        let hash = audience.hash(
            app, audience.subjectBytes(of: added.subject),
            isKindWide: audience.isKindWide(added.subject))
        let change = recentSubjects.expiry(ofChange: hash, now: now.monotonic)
        let first = recentEvents.first(hash: hash, since: now.monotonic - settings.settle)
        guard change != nil || first != nil else { return }
        var late = LateEntry(
            entry: added.entry, subject: added.subject, hash: hash, madeAt: now.monotonic,
            walks: 0..<0, events: first.map { $0..<recentEvents.end } ?? 0..<0,
            changeExpiresAt: change)
        for (number, place) in tracks.enumerated() where place != nil {
            let track = TrackID(rawValue: UInt32(number))
            if let pin = ledger.pinUnsettled(track, now: now.monotonic) { late.holds.append(pin) }
        }
        // Everything has settled: it is owed nothing.
        if !late.holds.isEmpty { serve(late, now: now) }
    }

    /// Sends what found no slot before.
    mutating func sendLateEntries(now: Now) {
        while freeEventSlots > 0, let late = lateEntries.popLast() {
            fanOuts.awaitVisits(of: late.subject.rawValue, -1)
            serve(late, now: now)
        }
    }

    private mutating func serve(_ late: LateEntry, now: Now) {
        var late = late
        if sendWalks(to: &late, now: now), sendChange(to: &late, now: now),
            sendEvents(to: &late, now: now)
        {
            for hold in late.holds { ledger.release(hold) }
            return
        }
        fanOuts.awaitVisits(of: late.subject.rawValue, 1)
        lateEntries.append(late)
    }

    // Each is false when a slot was needed and none was free.

    private mutating func sendWalks(to late: inout LateEntry, now: Now) -> Bool {
        while let walk = fanOuts.walk(of: late.subject.rawValue, in: late.walks) {
            let request = fanOuts.request(of: walk)
            guard visit(late.entry, request, claims: .walk(walk), now: now) else { return false }
            late.walks = fanOuts.number(of: walk) + 1..<late.walks.upperBound
        }
        return true
    }

    private mutating func sendChange(to late: inout LateEntry, now: Now) -> Bool {
        guard let expiresAt = late.changeExpiresAt else { return true }
        let oldest = late.holds[0]
        let place = tracks[Int(oldest.track.rawValue)]
        var change = FanOutRequest(
            subject: late.subject.rawValue, filter: AudienceFilter(environment: nil),
            expiresAt: expiresAt, origin: .unknown, readSequence: sequence,
            subjectTag: UInt32(truncatingIfNeeded: late.hash))
        if let place {
            change.origin = RecordPosition(
                topic: place.topic, partition: place.partition, offset: ledger.offset(of: oldest))
        }
        // Which binding the event came by is not known either: rather too late than too early.
        if delayMax > .zero { change.notBefore = now.monotonic + delayMax }
        guard send(change, to: late, now: now) else { return false }
        late.changeExpiresAt = nil
        return true
    }

    private mutating func sendEvents(to late: inout LateEntry, now: Now) -> Bool {
        let app = lanes[Int(audience.lane(of: late.entry.token).rawValue)].app
        var next = late.events.isEmpty ? nil : Optional(late.events.lowerBound)
        while let number = next, number < late.events.upperBound {
            let recent = recentEvents[number]
            var request = recent.request
            request.subject = late.subject.rawValue
            // A kind that nobody had shown may have come with this very registration.
            request.filter.kinds = numbers(ofKinds: recent.kinds, of: app)
            if request.expiresAt > now.monotonic {
                guard send(request, to: late, now: now) else {
                    late.events = number..<late.events.upperBound
                    return false
                }
            } else if request.expiresAt > late.madeAt,
                pushType(for: late.entry, of: request, lane: audience.lane(of: late.entry.token))
                    != nil
            {
                counters.expired += 1
            }
            next = recentEvents.following(number)
        }
        late.events = 0..<0
        return true
    }

    private mutating func send(_ owed: FanOutRequest, to late: LateEntry, now: Now) -> Bool {
        for hold in late.holds { ledger.retain(hold) }
        if visit(late.entry, owed, claims: .held(late.holds), now: now) { return true }
        for hold in late.holds { ledger.release(hold) }
        return false
    }

    // MARK: Ends

    /// Nobody shows anything under this token any more: what is owed to it ends, counted.
    mutating func dropLateEntries(of token: TokenID) {
        for late in lateEntries where late.entry.token == token {
            var owed = late.changeExpiresAt == nil ? 0 : 1
            var walks = late.walks
            while let walk = fanOuts.walk(of: late.subject.rawValue, in: walks) {
                owed += 1
                walks = fanOuts.number(of: walk) + 1..<walks.upperBound
            }
            var event = late.events.isEmpty ? nil : Optional(late.events.lowerBound)
            while let number = event, number < late.events.upperBound {
                owed += 1
                event = recentEvents.following(number)
            }
            counters.unregistered += owed
            for hold in late.holds { ledger.release(hold) }
            fanOuts.awaitVisits(of: late.subject.rawValue, -1)
        }
        lateEntries.removeAll { $0.entry.token == token }
    }
}
