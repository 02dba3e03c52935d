// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel

/// The record of an events topic that is being read: where it stands, and when that is.
struct RecordRead {
    let id: AssignmentID
    let position: RecordPosition
    let now: Now
}

/// What an event asks of the tokens of one list.
struct ListRequest {
    /// Of this list. Its body passes to what comes of it.
    var request: FanOutRequest
    let list: EventList
}

/// A record that had ended under the owner before, for each token that it had heard of.
struct RememberedRead {
    let read: RecordRead
    /// Those that have registered since.
    let newcomers: InheritedNotes.Newcomers
}

/// Tokens that an event on one list is still owed to. The claim passes to them.
struct ToldEntries {
    let entries: [AudienceEntry]
    let ask: ListRequest
    /// Whether nothing but its time and its expiry is remembered of the event.
    let isPlain: Bool
    let claim: OffsetClaim
}

/// A record that cannot be read, or is withheld, with what its dead letter says of it.
struct UnreadableEvent {
    let record: EventRecord
    let reason: UnreadableRecord
    let correlation: Correlation
    let subject: [UInt8]
    let headers: [(name: String, value: [UInt8])]
}
