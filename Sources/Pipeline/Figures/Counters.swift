// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Counts what has gone through the pipeline since the start. Every event and every push that goes
/// in is counted by one of these when it ends; `EventTally` and `PushTally` count the same in more
/// detail.
package struct Counters: Sendable, Equatable {
    // Events.
    /// Events that were read, and shards that Kafka refused.
    package var events = 0
    package var eventsUnreadable = 0
    /// Events whose subject nobody shows.
    package var eventsUnmatched = 0
    /// Events whose subject is shown by no token that they are for.
    package var eventsPassedOver = 0
    package var eventsExpired = 0
    package var eventsSkipped = 0
    /// Events that an operator has dropped.
    package var eventsDropped = 0
    /// Subjects of events that an operator has dropped, as the event was read or on its way through
    /// their tokens.
    package var subjectsDropped = 0
    /// Events of more tokens than `planning.fanOutMax`.
    package var eventsWithheld = 0
    /// Events that had ended under the owner of their partition before.
    package var eventsRemembered = 0
    /// Events that were written again as shards, because they have many tokens.
    package var eventsSplit = 0
    /// Shards that this worker fanned out itself, because Kafka did not take them.
    package var shardsRefused = 0

    // What events asked for.
    package var pushesQueued = 0
    /// Requests that needed no push of their own when they came, because another push, or its
    /// follow-up, answers for them.
    package var pushesCoalesced = 0
    /// Follow-ups that were queued when the push before them had ended.
    package var pushesFollowedUp = 0
    /// Pushes that ended without being in memory, so that nothing above counts them: those to
    /// suppressed tokens, follow-ups that never began, and those that ended while deferred.
    package var pushesUnqueued = 0

    // How pushes ended.
    package var accepted = 0
    package var expired = 0
    package var suppressed = 0
    package var unregistered = 0
    /// Answers of 410 after which the token was not given a suppression.
    package var deadUnconfirmed = 0
    package var rejected = 0
    /// Pushes that an operator has dropped.
    package var dropped = 0
    /// Pushes with a payload whose token had ceased to show its subject.
    package var unsubscribed = 0

    /// Pushes that were to be kept in `deferred`, or put back there, since they wait too long to
    /// hold an offset.
    package var deferred = 0

    // What waits in `deferred`.
    package var deferredRead = 0
    package var deferredUnreadable = 0
    /// Deferred pushes that were taken out to be sent, and queued. One that joined another push is
    /// coalesced.
    package var deferredSent = 0
    /// How often a push had to wait because its token was sent another one less than the minimum
    /// gap before.
    package var pushesHeldByGap = 0
    /// Pushes that were sent without regard to the gap, since `deferred` had no room for them.
    package var pushesWithoutGap = 0
    /// Pushes after which no gap is kept, since too many tokens (`delivery.deferredMax`) are within
    /// theirs.
    package var gapsForgotten = 0
    /// Accepted pushes above the budget of their token's day.
    package var pushesOverBudget = 0
    /// How often a push was deferred to the end of a window, since the token's budget was spent.
    package var pushesThinned = 0
    /// Deferred payloads that this worker has forgotten, so that a newer one will not end them.
    package var payloadsForgotten = 0
    /// Pushes that ended unsent because a newer payload of their collapse ID was accepted.
    package var deferredSuperseded = 0
    /// Deferred pushes whose wait is over, whatever came of it.
    package var deferredEnded = 0
    /// Records of `deferred` that were written again, because the tombstone of an older record hid
    /// them, or a record that says less.
    package var deferredRewritten = 0
    /// Records of `deferred` that were left in Kafka, or whose rows have left the memory, for want of
    /// room; and how many times a partition was read again for them.
    package var deferredForgotten = 0
    package var deferredReadings = 0

    // On the way.
    package var handedOver = 0
    // Pushes that were sent again, or are to be, by the outcome of the try before. One that ends
    // with that outcome is not among them.
    /// APNs has answered 5xx.
    package var retried = 0
    /// APNs has asked for another connection.
    package var resent = 0
    /// APNs has not answered, so that it may get them twice.
    package var unanswered = 0
    /// APNs has answered TooManyRequests.
    package var cooledDown = 0
    package var unprocessed = 0
    /// APNs has refused their credential or topic.
    package var requeued = 0
    /// Answers that called a token dead before its last registration.
    package var strikes = 0

    // Records.
    package var suppressionsWritten = 0
    package var suppressionsRead = 0
    package var deadLettersWritten = 0
    /// Failures that share a letter with others of their partition and reason, for want of room for
    /// a letter each.
    package var failuresMerged = 0
    /// Failures that were counted, since a dead letter had said the same of their token before.
    package var failuresRepeated = 0
    /// How often Kafka refused a record.
    package var recordsRefused = 0
    /// Records that were given up because they are too large for Kafka even without the event.
    package var recordsAbandoned = 0
    package var registrationsRead = 0
    package var registrationsUnreadable = 0
    /// Rows and targets of readable registrations that could not be used.
    package var registrationRowsSetAside = 0
    /// Rows that were taken without their kind, since their app has used up its kinds: they get
    /// every event of their subject except those that name kinds.
    package var registrationRowsWithoutKind = 0
    package var suppressionsUnreadable = 0

    // Circuit breakers.
    package var poolBreakersOpened = 0
    package var routeBreakersOpened = 0

    package init() {}

    /// Takes over the totals of what is counted in more detail.
    mutating func take(
        _ pushes: borrowing PushTally, _ events: borrowing EventTally, _ setAside: SetAsideTally
    ) {
        accepted = pushes.total(.accepted)
        rejected = pushes.total(.rejected)
        expired = pushes.total(.expired)
        suppressed = pushes.total(.suppressed)
        unregistered = pushes.total(.unregistered)
        deadUnconfirmed = pushes.total(.deadUnconfirmed)
        dropped = pushes.total(.dropped)
        unsubscribed = pushes.total(.unsubscribed)
        deferredSuperseded = pushes.total(.superseded)
        self.events = events.read
        eventsUnreadable = events.total(.unreadable)
        eventsUnmatched = events.total(.unmatched)
        eventsPassedOver = events.total(.passedOver)
        eventsExpired = events.total(.expired)
        eventsSkipped = events.total(.skipped)
        eventsDropped = events.total(.dropped)
        eventsWithheld = events.total(.withheld)
        eventsRemembered = events.total(.remembered)
        eventsSplit = events.total(.split)
        registrationsUnreadable = setAside.total(.registrations)
        registrationRowsSetAside = setAside.total(.registrationRows)
        suppressionsUnreadable = setAside.total(.suppressions)
        deferredUnreadable = setAside.total(.deferred)
    }

    /// All counters in the order above, so that whatever shows them leaves none out.
    package var named: [(name: String, value: Int)] {
        Mirror(reflecting: self).children.map { child in
            guard let name = child.label, let value = child.value as? Int else {
                preconditionFailure("every counter is an Int")
            }
            return (name, value)
        }
    }
}

/// Events that had expired when they were read.
package struct ExpiredEvents: Sendable, Equatable {
    /// How many had not expired when they were written: reading is late, or this worker's clock is
    /// ahead.
    package var whileWaiting = 0
    /// How many had already expired when they were written, according to their producer.
    package var beforeWritten = 0
    /// The longest time between writing and reading among those in `whileWaiting`.
    package var waitMax = Duration.zero

    package init() {}
}
