// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats

/// Dead letters wait for Kafka within `deadLetterBytesMax`. While their topic takes them, reading
/// waits for it. While it does not, everything else goes on: new letters go without their events
/// once half of the room is taken, and failures are merged once all of it is. The offsets of what
/// failed wait in any case.
extension Outbox {
    // MARK: Room

    /// The bytes of letters that gather tokens and of those that Kafka has not acknowledged.
    var letterBytes: Int { tickets.usage(of: .deadLetters).bytes + letters.bytes }

    /// How many events may be read in one go as far as their letters are concerned: each letter
    /// would fit with its event, or reading does not wait for letters.
    func roomForLetters(_ state: borrowing PipelineState) -> Int {
        if watch.isStalled { return .max }
        let most = state.settings.live.deadLetterEventBytesMax + TicketTable.overhead
        let least = letterBytes == 0 ? 1 : 0
        return max(least, (state.settings.sizes.wholeLetterBytesMax - letterBytes) / most)
    }

    private enum LetterRoom { case whole, coordinates, none }

    /// - Parameter originalBytes: the size of what the letter would contain of its event.
    private func room(
        for letter: DeadLetter, originalBytes: Int, holds: Int,
        _ state: borrowing PipelineState
    ) -> LetterRoom {
        let least = letterBytes + DeadLetterDrafts.cost(ofCoordinates: letter, holds: holds)
        if least + originalBytes <= state.settings.sizes.wholeLetterBytesMax { return .whole }
        return least <= state.settings.sizes.deadLetterBytesMax ? .coordinates : .none
    }

    /// Looks whether Kafka takes letters, and writes what was merged when there is room again.
    mutating func watchLetters(_ state: inout PipelineState, now: Now) {
        let most = state.settings.sizes.wholeLetterBytesMax
        let isFull =
            watch.isFull ? letterBytes > most / 2 : roomForLetters(state) == 0
        watch.looked(
            isFull: isFull, closed: tickets.letterBytesClosed, roomBytes: most, now: now.monotonic)
        while letterBytes <= most, let entry = merged.takeOldest() {
            write(entry.letter, holds: entry.holds, &state)
        }
    }

    /// Writes what was counted of repeated failures, where the time has come or all of it.
    mutating func tellRepeated(_ state: inout PipelineState, now: MonotonicTime, all: Bool) {
        while let letter = repeated.takeDue(now: now, all: all) {
            writeAtOnce(letter, holds: [], &state)
        }
    }

    // MARK: Writing

    /// Adds a failed push to the draft of a letter that says the same. Its claims pass to the
    /// letter.
    mutating func draft(
        _ letter: DeadLetter, holds: [OffsetClaim], _ state: inout PipelineState, now: Now
    ) {
        if repeated.counts(letter, now: now.monotonic) {
            state.counters.failuresRepeated += 1
            failures.note(letter)
            return state.release(holds)
        }
        var letter = letter
        let room = room(
            for: letter, originalBytes: letter.original?.size ?? 0, holds: holds.count, state)
        switch room {
        case .whole: break
        case .coordinates: letter.leaveOutOriginal()
        case .none: return merge(letter, holds: holds, &state)
        }
        let period = state.settings.live.deadLetterRepeatAfter
        if period > .zero,
            let oldest = repeated.began(with: letter, until: now.monotonic + period)
        {
            writeAtOnce(oldest, holds: [], &state)
        }
        if let full = letters.add(letter, holds: holds, now: now.monotonic) {
            write(full.letter, holds: full.holds, &state)
        }
    }

    /// Writes the letters whose time has come; all of them when the worker is about to stop.
    mutating func flushLetters(_ state: inout PipelineState, now: Now, all: Bool) {
        while let draft = letters.takeDue(now: now.monotonic, all: all) {
            write(draft.letter, holds: draft.holds, &state)
        }
        tellRepeated(&state, now: now.monotonic, all: all)
    }

    /// - Parameter key: nil takes the subject.
    private mutating func write(
        _ letter: DeadLetter, key: [UInt8]? = nil, holds: [OffsetClaim],
        _ state: inout PipelineState
    ) {
        countWritten(letter, &state)
        // What is repeated was noted as it failed.
        if letter.repeats == nil { failures.note(letter) }
        var letter = letter
        var value = DeadLetterEncoder.value(
            letter, eventBytesMax: state.settings.live.deadLetterEventBytesMax)
        // As JSON text the event may be several times as long.
        if letter.original != nil,
            letterBytes + value.count > state.settings.sizes.wholeLetterBytesMax
        {
            letter.leaveOutOriginal()
            value = DeadLetterEncoder.value(letter, eventBytesMax: 0)
        }
        let canSayLess = letter.original != nil || !letter.targets.isEmpty
        write(
            topic: .deadLetters, key: key ?? Self.key(of: letter), value: value, holds: holds,
            fallback: canSayLess ? Self.minimal(letter) : nil)
    }

    /// Counts a letter by its reason, or as `other` if APNs has named an unknown one: labels of
    /// metrics must be bounded. So is how many topics are told apart, since a deferred push names any.
    private mutating func countWritten(_ letter: DeadLetter, _ state: inout PipelineState) {
        state.counters.deadLettersWritten += 1
        let reason = letter.reason
        let isKnown =
            APNSReason(reason) != .unknown || DeadLetter.OwnReason(rawValue: reason) != nil
            || UnreadableCode(rawValue: reason) != nil || reason == APNSReason.none.name
        var kind = LetterKind(reason: isKnown ? reason : "other", topic: letter.source.topic)
        if written[kind] == nil, written.count >= LetterKind.countMax { kind.topic = "" }
        written[kind, default: 0] += 1
    }

    /// Writes a letter without gathering further tokens, such as for a deferral that Kafka does not
    /// take.
    mutating func writeAtOnce(
        _ letter: DeadLetter, holds: [OffsetClaim], _ state: inout PipelineState
    ) {
        let room = room(
            for: letter, originalBytes: letter.original?.size ?? 0, holds: holds.count, state)
        if room == .none {
            merge(letter, holds: holds, &state)
        } else {
            write(letter, holds: holds, &state)
        }
    }

    private mutating func merge(
        _ letter: DeadLetter, holds: [OffsetClaim], _ state: inout PipelineState
    ) {
        state.counters.failuresMerged += letter.repeats ?? max(1, letter.targets.count)
        merged.add(letter, holds: holds, &state.tracker)
    }

    /// Writes the dead letter of a record that cannot be read; the claim passes to it.
    mutating func writeUnreadable(
        _ record: borrowing EventRecord, _ headers: [(name: String, value: [UInt8])],
        _ reason: UnreadableRecord, _ correlation: Correlation, subject: [UInt8],
        hold: OffsetClaim, at position: RecordPosition, _ state: inout PipelineState, now: Now
    ) {
        var letter = DeadLetter(
            reason: reason.code, source: state.source(position), firstAt: now.wall,
            lastAt: now.wall, subject: subject)
        letter.message = reason.message
        letter.correlation = correlation
        let size = (record.key?.count ?? 0) + (record.value?.count ?? 0)
        let headerBytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
        let room = room(
            for: letter, originalBytes: size + headerBytes, holds: 1, state)
        if room == .none { return merge(letter, holds: [hold], &state) }
        if room == .whole, size <= state.settings.live.deadLetterEventBytesMax {
            letter.original = DeadLetter.Original(
                key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
                headers: headers)
        } else {
            letter.isOriginalLeftOut = true
        }
        // A key that is not a subject may have any length.
        let isShort = record.key.map { $0.count <= RecordLimits.subjectBytesMax } ?? true
        write(
            letter, key: isShort ? record.key.map { Array($0) } ?? [] : nil, holds: [hold], &state)
    }

    private static func minimal(_ letter: DeadLetter) -> [UInt8] {
        var minimal = letter
        minimal.leaveOutOriginal()
        minimal.targets = []
        minimal.subject = []
        minimal.correlation = .none
        return DeadLetterEncoder.value(minimal, eventBytesMax: 0)
    }

    /// The letter's key: the subject, or the event's position where the subject is no longer known.
    private static func key(of letter: DeadLetter) -> [UInt8] {
        if !letter.subject.isEmpty { return letter.subject }
        let source = letter.source
        return Array("\(source.topic)/\(source.partition)/\(source.offset)".utf8)
    }
}
