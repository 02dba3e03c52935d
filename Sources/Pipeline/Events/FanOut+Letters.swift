// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats

/// Events that cannot be read, or are withheld.
extension FanOut {
    /// The event ends as a dead letter with the whole record.
    // Not inlined: hardly any event does.
    @inline(never)
    mutating func becomeLetter(
        _ record: EventRecord, _ error: UnreadableRecord, of id: AssignmentID,
        _ position: RecordPosition, now: Now, header: EventRecord.HeaderLookup,
        headers: () -> [(name: String, value: [UInt8])], _ state: inout PipelineState,
        _ outbox: inout Outbox
    ) {
        tally.ended(error.isWithheld ? .withheld : .unreadable, topic: record.binding)
        let hold = state.tracker.hold(id)
        let correlation = decoder.correlation(of: record, header: header)
        if state.traces.isOn {
            trace(
                unreadable: error, correlation, writtenAt: record.timestamp, position,
                hold: hold, now, &state)
        }
        let subject = decoder.subject(ofUnreadable: record, header: header)
        outbox.writeUnreadable(
            record, headers(), error, correlation, subject: subject, hold: hold, at: position,
            &state, now: now)
    }
}
