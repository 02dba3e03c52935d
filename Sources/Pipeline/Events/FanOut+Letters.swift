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
        headers: () -> [(name: String, value: [UInt8])], _ book: inout PushBook,
        _ outbox: inout Outbox
    ) {
        tally.ended(error.isWithheld ? .withheld : .unreadable, topic: record.binding)
        let hold = book.tracker.hold(id)
        let correlation = decoder.correlation(of: record, header: header)
        if book.traces.isOn {
            trace(
                unreadable: error, correlation, writtenAt: record.timestamp, position,
                hold: hold, now, &book)
        }
        let subject = decoder.subject(ofUnreadable: record, header: header)
        outbox.writeUnreadable(
            record, headers(), error, correlation, subject: subject, hold: hold, at: position,
            &book, now: now)
    }
}
