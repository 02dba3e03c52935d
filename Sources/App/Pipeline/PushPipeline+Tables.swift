// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
package import PushModel

extension PushPipeline {
    /// A record of the registrations topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func registrationRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime, now: Now
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            switch try registrations.decode(
                key: key, value: value, timestamp: timestamp, into: &registration)
            {
            case .replaced: count(audience.apply(registration))
            case .removed: registration.key.withUnsafeBytes { _ = audience.remove(key: $0) }
            }
        } catch {
            counters.registrationsUnreadable += 1
            return error
        }
        counters.registrationsRead += 1
        if !audience.changes.isEmpty { registrationApplied(now: now) }
        // Walks and late requests name kinds by number; what is remembered of events, by name.
        if audience.hasUnusedKinds, fanOuts.isEmpty, lateRequests.isEmpty {
            audience.reclaimKinds()
        }
        return nil
    }

    private mutating func count(_ setAside: SetAside) {
        counters.registrationRowsSetAside += setAside.unroutable + setAside.outOfBounds
        counters.registrationRowsWithoutKind += setAside.withoutKind
    }

    /// Apps that have used up their kinds, by name, and how many rows were taken without since the
    /// start.
    package var appsOutOfKinds: [(app: String, rows: Int)] {
        audience.appsOutOfKinds.map { (routing.name(of: $0.app), $0.refused) }
    }

    /// A record of the verdicts topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func verdictRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            let verdict = try verdicts.verdict(key: key, value: value, into: &tokenKey)
            tokenKey.token.withUnsafeBytes { token in
                if let verdict {
                    _ = audience.apply(verdict: verdict, lane: tokenKey.lane, token: token)
                } else {
                    _ = audience.revokeVerdict(lane: tokenKey.lane, token: token)
                }
            }
        } catch {
            counters.verdictsUnreadable += 1
            return error
        }
        counters.verdictsRead += 1
        return nil
    }

    /// Follows up what the audience reports of a change.
    private mutating func registrationApplied(now: Now) {
        for index in audience.changes.moved.indices {
            meetMovedEntry(audience.changes.moved[index], now: now)
        }
        // A walk may have passed the end of its list, where new entries go. Their token may have
        // stood further down until now, under another registration.
        if !fanOuts.isEmpty {
            for index in audience.changes.subscribed.indices {
                meetMovedEntry(audience.changes.subscribed[index], now: now)
            }
        }
        for index in audience.changes.removedTokens.indices {
            tokenRemoved(audience.changes.removedTokens[index])
        }
        // Nothing is owed before the first event is read: a replay need not ask.
        if counters.events > 0 {
            for index in audience.changes.subscribed.indices {
                requestIfRecent(audience.changes.subscribed[index], now: now)
            }
        }
        audience.changes.clear()
        audience.reclaimRemoved()
        giveBack()
    }

    /// This entry stands where a walk may have passed: visit it now.
    private mutating func meetMovedEntry(_ moved: AudienceChanges.Listed, now: Now) {
        for walk in fanOuts.walks(of: moved.subject.rawValue) {
            let request = fanOuts.request(of: walk)
            let entry = moved.entry
            guard !visit(entry, request, claims: .walk(walk), now: now) else { continue }
            var holds: [Hold] = []
            fanOuts.forEachHold(of: walk) { holds.append($0) }
            for hold in holds { ledger.retain(hold) }
            postpone(request, for: entry, holds: holds)
        }
    }

    private mutating func postpone(
        _ request: FanOutRequest, for entry: AudienceEntry, holds: [Hold]
    ) {
        pushes.bodies.retain(request.body)
        lateRequests.append(LateRequest(entry: entry, request: request, holds: holds))
    }

    /// Nobody shows anything under this token any more: what waits for it ends.
    private mutating func tokenRemoved(_ token: TokenID) {
        var slots = payloadPushes.removeValue(forKey: token) ?? []
        let cell = audience.pending(token)
        if cell != 0 { slots.append(cell - 1) }
        for slot in slots {
            // What trails a push in flight ends here, the push itself with its outcome.
            let isTrailing = pushes[slot].isDirty
            let hasEnded = pushes.orphan(slot) { ledger.release($0) }
            counters.unregistered += (hasEnded ? 1 : 0) + (isTrailing ? 1 : 0)
        }
        for late in lateRequests where late.entry.token == token {
            counters.unregistered += 1
            for hold in late.holds { ledger.release(hold) }
            pushes.bodies.release(late.request.body)
        }
        lateRequests.removeAll { $0.entry.token == token }
    }

    /// An event is owed also to a token that registered up to `settle` after it. Which event that was
    /// is not known by position, but its offset is among the unsettled ones, and the push holds
    /// the oldest of those.
    private mutating func requestIfRecent(_ added: AudienceChanges.Listed, now: Now) {
        let app = lanes[Int(audience.lane(of: added.entry.token).rawValue)].app
        let hash = audience.hash(
            app, audience.subjectBytes(of: added.subject),
            isKindWide: audience.isKindWide(added.subject))
        if recentSubjects.hasChanged(hash: hash, now: now.monotonic) {
            var change = FanOutRequest(
                subject: added.subject.rawValue, filter: AudienceFilter(environment: nil),
                expiresAt: now.monotonic + settings.events.changeTTL,
                origin: RecordPosition(topic: 0, partition: 0, offset: 0), readSequence: sequence,
                subjectTag: UInt32(truncatingIfNeeded: hash))
            // Which binding the event came by is not known either: rather too late than too early.
            if delayMax > .zero { change.notBefore = now.monotonic + delayMax }
            requestLate(change, for: added.entry, now: now)
        }
        for recent in recentPayloads.events(hash: hash) {
            var payload = recent.request
            payload.subject = added.subject.rawValue
            // A kind that nobody had shown may have come with this very registration.
            payload.filter.kinds = numbers(ofKinds: recent.kinds, of: app)
            requestLate(payload, for: added.entry, now: now)
        }
    }

    private mutating func requestLate(
        _ owed: FanOutRequest, for entry: AudienceEntry, now: Now
    ) {
        var holds: [Hold] = []
        for (number, place) in tracks.enumerated() where place != nil {
            let track = TrackID(rawValue: UInt32(number))
            if let pin = ledger.pinUnsettled(track, now: now.monotonic) { holds.append(pin) }
        }
        // Everything has settled: it is owed nothing.
        guard let oldest = holds.first else { return }
        var owed = owed
        if owed.payloadType == nil {
            let place = tracks[Int(oldest.track.rawValue)]!
            owed.origin = RecordPosition(
                topic: place.topic, partition: place.partition, offset: ledger.offset(of: oldest))
        }
        if !visit(entry, owed, claims: .held(holds), now: now) {
            postpone(owed, for: entry, holds: holds)
        }
    }
}
