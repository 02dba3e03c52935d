// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What a worker reads, and what its model makes of it.
extension SimulationWorker {
    func apply(
        _ record: SimulatedTableRecord, world: SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        let isReadable = withBytes(record.key) { key in
            withBytes(record.value) { value in
                if case .suppression = record.meaning {
                    return pipeline.suppressionRecord(
                        key: key, value: value, timestamp: record.timestamp) == nil
                }
                return pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: value, timestamp: record.timestamp,
                        partition: record.partition, offset: record.offset), now: now) == nil
            }
        }
        if case .unreadable = record.meaning {
            try require(!isReadable, "a registration that cannot be read was read")
        } else {
            try require(isReadable, "a record was not read: \(record)")
        }
        hear(record, world: world, now: now)
    }

    /// The model learns of a record.
    func hear(_ record: SimulatedTableRecord, world: SimulatedKafka, now: Now) {
        heard.append(record)
        if case .suppression = record.meaning {
            let (token, time) = SimulatedSuppression.parse(key: record.key, value: record.value)
            model.learned(token, suppression: time, now: now)
        } else {
            model.apply(record, payloads: world.payloads.values, now: now) {
                restrictions.isDropped(subject: $0)
            }
        }
    }

    /// What comes of a record, whatever the tokens that it is for.
    enum Fate { case asked, dropped, withheld }

    private func fate(
        of record: SimulatedEventRecord, in partition: SimulatedPartition, now: Now
    ) -> Fate {
        if restrictions.isDropped(topic: Self.topics[Int(partition.topic)]) { return .dropped }
        guard let event = record.event, event.expiresAt > now.wall else { return .asked }
        if restrictions.isDropped(subject: event.subject) { return .dropped }
        if let source = event.source, restrictions.isDropped(topic: Self.topics[source]) {
            return .dropped
        }
        // A shard's event has passed the bound.
        let isReleased = record.releases.map { $0.offset < record.offset } ?? false
        if event.tokens == nil, !isReleased, model.tokens(askedBy: event) > settings.fanOutMax {
            return .withheld
        }
        return .asked
    }

    @discardableResult
    func read(
        _ record: SimulatedEventRecord, partition: Int, of log: SimulatedPartition, now: Now
    ) throws(SimulationFailure) -> Fate {
        sequence += 1
        let before = inherited[partition].flatMap {
            record.offset < $0.note.endedOffset ? $0.known : nil
        }
        let progress = progressInherited(partition, record.offset)
        let isPaused = restrictions.isPaused(topic: Self.topics[Int(log.topic)])
        try require(!isPaused, "a record of a topic that an operator has paused")
        let fate = fate(of: record, in: log, now: now)
        let written = pipeline.records.count
        let counted = pipeline.counters
        withBytes(record.key.map { Array($0.utf8) }) { key in
            withBytes(record.value.map { Array($0.utf8) }) { value in
                let event = EventRecord(
                    binding: Int(log.topic), key: key, value: value, timestamp: record.timestamp,
                    offset: record.offset)
                withBytes(record.releases.map { Array($0.text.utf8) }) { released in
                    pipeline.eventRecord(
                        event, of: assignments[partition]!, now: now
                    ) { $0 == DeadLetter.releasedHeader ? released : nil }
                }
                // For the next one, with whatever the index learns until then: a key that does not
                // come, or has gone from the index, is to change nothing.
                if let key, !key.isEmpty { pipeline.prefetch(key: key, binding: Int(log.topic)) }
            }
        }
        positions[partition] = record.offset + 1
        let after = pipeline.counters
        if fate == .dropped {
            try requireDropped(written, counted, isRemembered: before != nil)
            return fate
        }
        try require(after.eventsDropped == counted.eventsDropped, "an event is dropped")
        let event = record.event ?? SimulatedEvent(serial: 0, expiresAt: now.wall)
        let deadline = now.monotonic + (event.expiresAt - now.wall)
        if event.payload != nil, deadline > now.monotonic, fate == .asked {
            payloadsReadAt = max(payloadsReadAt, now.wall)
        }
        let read = SimulationModel.ReadEvent(
            event: event, partition: partition, offset: record.offset, readAt: now.monotonic,
            deadline: deadline, stamp: payloadsReadAt, sequence: sequence)
        let split = noteShards(from: written, of: read, topic: Int(log.topic))
        let letters = pipeline.records[written...].filter { $0.topic == .deadLetters }
        if fate == .withheld {
            try noteWithheld(
                read, known: before, letter: letters.first?.ticket,
                letters: letters.count + after.failuresMerged - counted.failuresMerged)
            return fate
        }
        try require(
            letters.count + after.failuresMerged - counted.failuresMerged
                == (record.event == nil && before == nil ? 1 : 0),
            "one letter for a record unread")
        if let payload = event.payload { bodies[payload.body] = (event, sequence) }
        if record.event != nil {
            model.read(read, known: before ?? progress?.known, progress: progress?.progress) {
                row in
                !split.contains { $0.subject != nil || $0.kinds.contains { $0 == row.kind } }
            }
        } else if before == nil {
            model.unreadable(read, ticket: letters.first?.ticket)
        }
        return fate
    }

    /// An event of more tokens than may be ends with its letter. One that had ended under the owner
    /// before has its letter, as far as its next owner can tell: unless it is owed to newcomers.
    private func noteWithheld(
        _ read: SimulationModel.ReadEvent, known: Int?, letter: UInt64?, letters: Int
    ) throws(SimulationFailure) {
        if let known, letters == 0 {
            return try require(
                !model.isOwedToNewcomers(read.event, known: known),
                "an event is withheld from newcomers without a letter: \(read)")
        }
        try require(letters == 1, "\(letters) letters for a withheld event")
        model.unreadable(read, ticket: letter)
    }

    /// The event made no pushes and no records, and was counted.
    private func requireDropped(
        _ written: Int, _ before: Counters, isRemembered: Bool
    ) throws(SimulationFailure) {
        let after = pipeline.counters
        // One that had ended under the owner before may count as that.
        let dropped = after.eventsDropped - before.eventsDropped
        try require(dropped == 1 || isRemembered && dropped == 0, "a drop is not counted")
        try require(
            pipeline.records.count == written && after.failuresMerged == before.failuresMerged,
            "a record of a dropped event")
        try require(
            after.pushesQueued == before.pushesQueued
                && after.pushesCoalesced == before.pushesCoalesced,
            "a push of a dropped event")
    }

    /// What this worker would tell the next owner of a partition.
    func note(of partition: Int, now: Now) throws(SimulationFailure) -> SimulatedNote? {
        guard let id = assignments[partition], let note = pipeline.commitNote(id, now: now) else {
            return nil
        }
        try require(
            CommitNote(note.text(cluster: "one") ?? "", cluster: "one") == note,
            "a note that cannot be read: \(note)")
        let inherited = inherited[partition]
        if let inherited, inherited.note == note { return inherited }
        let ended = pipeline.state.tracker.endedOffset(id)
        try require(ended <= positions[partition], "what ended was not read yet")
        try requireEnded(partition: partition, below: ended)
        for progress in note.spread where progress.offset < positions[partition] {
            try require(
                !model.owes(partition: partition, progress),
                "an event has not come so far: \(progress)")
        }
        let isPassedOn =
            note.endedOffset > ended || note.spread.contains { $0.offset >= positions[partition] }
        let known = isPassedOn ? min(registrationsRead, inherited!.known) : registrationsRead
        return SimulatedNote(note: note, known: known)
    }

    /// Where the owner before was with an event that it has spread, and what it knew of registrations.
    func progressInherited(_ partition: Int, _ offset: Int64) -> (
        progress: FanOutProgress, known: Int
    )? {
        guard let inherited = inherited[partition], offset >= inherited.note.endedOffset else {
            return nil
        }
        return inherited.note.spread.first { $0.offset == offset }
            .map { ($0.progress, inherited.known) }
    }
}
