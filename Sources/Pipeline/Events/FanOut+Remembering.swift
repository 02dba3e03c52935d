// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Reads the events of the last grace period again that have ended under the owner before.
extension FanOut {
    /// Reads a record that has ended for each token that the owner before had heard of. It is
    /// remembered for tokens that register from now on, and pushed to those that have registered
    /// since. What could not be read, or had expired, has been dealt with.
    @inline(never)
    mutating func remember(
        _ record: EventRecord, _ remembered: RememberedRead, header: EventRecord.HeaderLookup,
        _ state: inout PipelineState, _ late: inout LateRegistrations
    ) throws(UnreadableRecord) {
        let read = remembered.read
        let now = read.now
        let event = try? decoder.decode(record, now: now.wall, header: header)
        guard let event, event.expiresAt > now.wall, !isOfDroppedTopic(event, state) else {
            return tally.ended(.remembered, topic: record.binding)
        }
        let lists =
            event.subject.isEmpty
            ? (event.isAppWide ? state.audience.kindNames(of: event.app) : event.kinds)
                .map { EventList(kind: $0, of: event, state) }
            : ([event] + event.furtherSubjects.map { event.about($0) })
                .filter { !dropped.isDropped($0) }
                .map { EventList(subjectOf: $0, state) }
        let pushed: [[AudienceEntry]]
        switch remembered.newcomers {
        case .none: pushed = lists.map { _ in [] }
        case .some(let entries): pushed = lists.map { entries[$0.subject] ?? [] }
        case .unknown: pushed = []
        }
        if state.settings.live.fanOutMax < .max {
            do throws(UnreadableRecord) {
                try checkBound(event, at: read.position, now: now, header: header, state)
            } catch {
                // The owner before has written its letter, or has pushed it while it was for fewer
                // tokens. Then newcomers are owed a push, or a letter in place of it.
                let isForNewcomers =
                    pushed.count < lists.count || !pushed.allSatisfy(\.isEmpty)
                guard isForNewcomers else {
                    return tally.ended(.remembered, topic: record.binding)
                }
                throw error
            }
        }
        tally.ended(.remembered, topic: record.binding)
        // Whom the owner before had not heard of is not known, or they are very many: then it is as
        // if there had been no note.
        let isForFew = pushed.allSatisfy { $0.count <= state.settings.sizes.immediateFanOutMax }
        guard pushed.count == lists.count, isForFew else {
            _ = fanOut(event, read, &state, &late)
            return
        }
        let shared = request(event, of: .none, position: read.position, now: now, &state)
        for (list, entries) in zip(lists, pushed) {
            let ask = shared.on(list)
            late.noteEvent(ask.request, of: event, hash: list.hash, &state, now: now)
            guard !entries.isEmpty else { continue }
            let told = ToldEntries(
                entries: entries, ask: ask, isPlain: event.isPlain,
                claim: state.tracker.claim(read.id))
            late.tell(told, &self, &state, now: now)
        }
        state.pushes.bodies.release(shared.body)
    }
}

extension LateRegistrations {
    /// What the owner before has told of this record; nil if it is for all tokens.
    mutating func told(
        _ id: AssignmentID, offset: Int64, _ audience: borrowing Audience
    ) -> InheritedNotes.Told? {
        inherited.told(id, offset: offset, registrations, audience)
    }

    /// Pushes the event that was noted last to these entries of its list.
    mutating func tell(
        _ told: ToldEntries, _ fanOut: inout FanOut, _ state: inout PipelineState, now: Now
    ) {
        let list = told.ask.list
        for entry in told.entries {
            state.tracker.retain(told.claim)
            var late = LateEntry(
                entry: entry, subject: list.subject, hash: list.hash, madeAt: now.monotonic,
                fanOuts: 0..<0,
                events: told.isPlain ? 0..<0 : recentEvents.end - 1..<recentEvents.end,
                changeExpiresAt: told.isPlain ? told.ask.request.expiresAt : nil)
            late.claims = [told.claim]
            serve(late, &fanOut, &state, now: now)
        }
        state.tracker.release(told.claim)
    }
}
