// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Whether events are left unread since this worker's clock is far ahead of Kafka's: to be read means
/// for most of them to end as expired.
///
/// A backlog is old whatever the clock says. So a record bears witness only if it was written while
/// this worker was reading: behind the end of its partition, or in a table that had been read to its
/// end. If even the newest of these is old, the clock is ahead, or all who write to Kafka are late.
struct ClockHold {
    /// The partitions of events that were read to their ends, so that what comes now is new.
    private var atEnd: Set<AssignmentID> = []
    /// Whether any record bears witness.
    private(set) var hasWitness = false

    /// Hosts that differ by more than this have no synchronised clocks; producers retry for less. What
    /// is written late, as by a mirror that keeps the records' times and is behind, is read as long as
    /// this clock does not call it expired.
    static let leadMax = Duration.seconds(600)

    mutating func reachedEnd(_ id: AssignmentID) { atEnd.insert(id) }
    mutating func forget(_ id: AssignmentID) { atEnd.remove(id) }

    /// A record of a table was read that had been read to its end.
    mutating func readNewRecord() { hasWitness = true }

    /// An event is about to be read.
    ///
    /// - Parameters:
    ///   - age: of its record, by this worker's clock.
    ///   - lead: how far this clock is ahead of the newest record; nil if none was read.
    ///   - life: for how long an event is worth a push at most.
    /// - Returns: whether it must wait. It does not wait for longer than `life`: then the newest
    ///   record's time, too, says that it has expired.
    mutating func holds(
        _ id: AssignmentID, age: Duration, lead: Duration?, life: Duration
    ) -> Bool {
        if !hasWitness, atEnd.contains(id) { hasWitness = true }
        guard age >= life, hasWitness else { return false }
        let lead = min(age, lead ?? age)
        return lead > Self.leadMax && age - lead < life
    }
}

/// What is kept from ending since this worker's clock may be ahead.
struct ClockDoubt: Equatable {
    /// Deferred pushes that have expired by this clock alone.
    var deferred = 0
    /// Partitions of events that are not read.
    var partitions = 0
    /// How far the clock is ahead of the newest record.
    var lead = Duration.zero

    var isNothing: Bool { deferred == 0 && partitions == 0 }
}
