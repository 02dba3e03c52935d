// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience

/// Flows through the pipeline since the start. Every event and every push that goes in comes out
/// under one of these.
package struct Counters: Sendable, Equatable {
    // Events.
    package var events = 0
    package var eventsUnreadable = 0
    /// Nobody shows the subject.
    package var eventsUnmatched = 0
    package var eventsExpired = 0
    package var eventsSkipped = 0
    /// Written again as shards, for their many tokens.
    package var eventsSplit = 0
    /// Fanned out here after all: Kafka did not take them.
    package var shardsRefused = 0

    // What events asked for.
    package var pushesQueued = 0
    /// An existing push answered for the event too.
    package var pushesCoalesced = 0

    // How pushes ended.
    package var accepted = 0
    package var expired = 0
    package var suppressed = 0
    package var unregistered = 0
    /// APNs said 410, and the token was not given a suppression.
    package var deadUnconfirmed = 0
    package var rejected = 0

    /// Written to `deferred`, or put back there: it waits too long to hold an offset.
    package var deferred = 0

    // What waits in `deferred`.
    package var deferredRead = 0
    package var deferredUnreadable = 0
    /// Taken out, to be sent.
    package var deferredSent = 0
    /// Deferred payloads that are known no more: a newer one will not end them.
    package var payloadsForgotten = 0
    /// Ended unsent: a newer payload of its collapse ID was accepted.
    package var deferredSuperseded = 0
    /// Its wait is over, whatever came of it.
    package var deferredEnded = 0
    /// Rewritten, because a tombstone of an older record or a record that promises less hid it.
    package var deferredRewritten = 0

    // On the way.
    package var handedOver = 0
    package var retried = 0
    package var resent = 0
    package var cooledDown = 0
    package var unprocessed = 0
    package var strikes = 0

    // Records.
    package var suppressionsWritten = 0
    package var suppressionsRead = 0
    package var deadLettersWritten = 0
    /// Told together with others of their partition and reason, for want of room for a letter each.
    package var failuresMerged = 0
    /// Produced again.
    package var recordsRefused = 0
    /// Too large for Kafka even without the event.
    package var recordsAbandoned = 0
    package var registrationsRead = 0
    package var registrationsUnreadable = 0
    /// Rows of readable registrations that could not be used.
    package var registrationRowsSetAside = 0
    /// Rows that were taken without their kind, since their app has used up its kinds: they hear
    /// every event of their subject but those that name kinds.
    package var registrationRowsWithoutKind = 0
    package var suppressionsUnreadable = 0

    // Circuit breakers.
    package var poolBreakersOpened = 0
    package var routeBreakersOpened = 0

    package init() {}

    mutating func add(_ setAside: SetAside) {
        registrationRowsSetAside += setAside.unroutable + setAside.outOfBounds
        registrationRowsWithoutKind += setAside.withoutKind
    }

    /// All of them, in the order above: what shows them forgets none.
    package var named: [(name: String, value: Int)] {
        Mirror(reflecting: self).children.map { child in
            guard let name = child.label, let value = child.value as? Int else {
                preconditionFailure("a counter that is no number")
            }
            return (name, value)
        }
    }
}

/// Events that had expired when they were read.
package struct ExpiredEvents: Sendable, Equatable {
    /// They were worth something when they were written: reading is late, or this worker's clock
    /// is ahead.
    package var whileWaiting = 0
    /// They were dead when they were written, by what their producer says.
    package var beforeWritten = 0
    /// Of the first kind, the longest time between writing and reading.
    package var waitMax = Duration.zero

    package init() {}
}
