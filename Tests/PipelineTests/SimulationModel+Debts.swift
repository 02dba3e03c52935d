// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// What the model's lists are of.
extension SimulationModel {
    /// An event as this worker has read it.
    struct ReadEvent {
        let event: SimulatedEvent
        let partition: Int
        let offset: Int64
        let readAt: MonotonicTime
        /// When it expires by the clock that this worker had when it read the event.
        var deadline: MonotonicTime
        /// When it was read by that clock, which for payloads never goes back: theirs are ordered so.
        let stamp: WallTime
        /// Counts what this worker reads and hands over.
        let sequence: Int
    }

    /// What is owed to one token for one event. It ends when a push has told the token, or when Kafka
    /// has acknowledged a record that says what became of it.
    struct Debt {
        let read: ReadEvent
        /// Nil: the record itself, which cannot be read.
        let token: SimulatedToken?
        /// Tickets of which any one ends it by its acknowledgement.
        var tickets: Set<UInt64> = []
        /// A push that answers for it was rejected, and its letter is not written yet.
        var isUnwritten = false
        /// Its offset waits for a record in any case, even if it expires meanwhile.
        var isBound = false
    }

    /// A push that was handed over.
    struct Flight {
        let slot: UInt32
        let token: SimulatedToken
        /// The event whose payload it carries, and when that was read; nil for "look again".
        let payload: (event: SimulatedEvent, sequence: Int)?
        /// When that was read, by whichever worker.
        let payloadAt: WallTime
        let sequence: Int
        /// Of `deferred`, whether or not it comes from there.
        let key: [UInt8]
        let handedOverAt: MonotonicTime
        let registeredAt: WallTime
        var dueAt: MonotonicTime
        var answer: SimulatedAnswer
    }
}
