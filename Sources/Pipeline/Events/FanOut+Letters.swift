// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats

/// Events that cannot be read, or are withheld.
extension FanOut {
    /// What the dead letter of this record says of it.
    // Not inlined: hardly any event is one.
    @inline(never)
    mutating func unreadable(
        _ record: EventRecord, _ reason: UnreadableRecord, header: EventRecord.HeaderLookup,
        headers: () -> [(name: String, value: [UInt8])]
    ) -> UnreadableEvent {
        UnreadableEvent(
            record: record, reason: reason,
            correlation: decoder.correlation(of: record, header: header),
            subject: decoder.subject(ofUnreadable: record, header: header), headers: headers())
    }

    /// The event ends as a dead letter with the whole record.
    @inline(never)
    mutating func becomeLetter(
        _ event: UnreadableEvent, _ read: RecordRead, _ state: inout PipelineState
    ) {
        let topic = event.record.binding
        tally.ended(event.reason.isWithheld ? .withheld : .unreadable, topic: topic)
        let claim = state.tracker.claim(read.id)
        if state.traces.isOn { trace(event, read, claim, &state) }
        state.writeUnreadable(event, read, claim)
    }
}
