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
extension PipelineState {
    // MARK: Room

    /// How many events may be read in one go as far as their letters are concerned: each letter
    /// would fit with its event, or reading does not wait for outbox.letters.
    func roomForLetters() -> Int {
        if outbox.watch.isStalled { return .max }
        let most = settings.live.deadLetterEventBytesMax + TicketTable.overhead
        let least = outbox.letterBytes == 0 ? 1 : 0
        return max(least, (settings.sizes.wholeLetterBytesMax - outbox.letterBytes) / most)
    }

    private enum LetterRoom { case whole, coordinates, none }

    /// - Parameter originalBytes: the size of what the letter would contain of its event.
    private func room(
        for letter: DeadLetter, originalBytes: Int, claims: Int
    ) -> LetterRoom {
        let least =
            outbox.letterBytes + DeadLetterDrafts.cost(ofCoordinates: letter, claims: claims)
        if least + originalBytes <= settings.sizes.wholeLetterBytesMax { return .whole }
        return least <= settings.sizes.deadLetterBytesMax ? .coordinates : .none
    }

    /// Looks whether Kafka takes letters, and writes what was merged when there is room again.
    mutating func watchLetters(now: Now) {
        let most = settings.sizes.wholeLetterBytesMax
        let isFull =
            outbox.watch.isFull ? outbox.letterBytes > most / 2 : roomForLetters() == 0
        outbox.watch.looked(
            isFull: isFull, closed: outbox.tickets.letterBytesClosed, roomBytes: most,
            now: now.monotonic)
        while outbox.letterBytes <= most, let entry = outbox.merged.takeOldest() {
            write(entry.letter, claims: entry.claims)
        }
    }

    /// Writes what was counted of repeated failures, where the time has come or all of it.
    mutating func tellRepeated(now: MonotonicTime, all: Bool) {
        while let letter = outbox.repeated.takeDue(now: now, all: all) {
            writeAtOnce(letter, claims: [])
        }
    }

    // MARK: Writing

    /// Adds a failed push to the draft of a letter that says the same. Its claims pass to the
    /// letter.
    mutating func draft(
        _ letter: DeadLetter, claims: [OffsetClaim], now: Now
    ) {
        if outbox.repeated.counts(letter, now: now.monotonic) {
            counters.failuresRepeated += 1
            outbox.failures.note(letter)
            return release(claims)
        }
        var letter = letter
        let room = room(
            for: letter, originalBytes: letter.original?.size ?? 0, claims: claims.count)
        switch room {
        case .whole: break
        case .coordinates: letter.leaveOutOriginal()
        case .none: return merge(letter, claims: claims)
        }
        let period = settings.live.deadLetterRepeatAfter
        if period > .zero,
            let oldest = outbox.repeated.began(with: letter, until: now.monotonic + period)
        {
            writeAtOnce(oldest, claims: [])
        }
        if let full = outbox.letters.add(letter, claims: claims, now: now.monotonic) {
            write(full.letter, claims: full.claims)
        }
    }

    /// Writes the letters whose time has come; all of them when the worker is about to stop.
    mutating func flushLetters(now: Now, all: Bool) {
        while let draft = outbox.letters.takeDue(now: now.monotonic, all: all) {
            write(draft.letter, claims: draft.claims)
        }
        tellRepeated(now: now.monotonic, all: all)
    }

    /// - Parameter key: nil takes the subject.
    private mutating func write(
        _ letter: DeadLetter, key: [UInt8]? = nil, claims: [OffsetClaim]
    ) {
        countWritten(letter)
        // What is repeated was noted as it failed.
        if letter.repeats == nil { outbox.failures.note(letter) }
        var letter = letter
        var value = DeadLetterEncoder.value(
            letter, eventBytesMax: settings.live.deadLetterEventBytesMax)
        // As JSON text the event may be several times as long.
        if letter.original != nil,
            outbox.letterBytes + value.count > settings.sizes.wholeLetterBytesMax
        {
            letter.leaveOutOriginal()
            value = DeadLetterEncoder.value(letter, eventBytesMax: 0)
        }
        let canSayLess = letter.original != nil || !letter.targets.isEmpty
        var draft = RecordDraft(
            .deadLetters, key: key ?? Self.key(of: letter), value: value, claims: claims)
        if canSayLess { draft.fallback = Self.minimal(letter) }
        outbox.write(draft)
    }

    /// Counts a letter by its reason, or as `other` if APNs has named an unknown one: labels of
    /// metrics must be bounded. So is how many topics are told apart, since a deferred push names any.
    private mutating func countWritten(_ letter: DeadLetter) {
        counters.deadLettersWritten += 1
        let reason = letter.reason
        let isKnown =
            APNSReason(reason) != .unknown || DeadLetter.OwnReason(rawValue: reason) != nil
            || UnreadableCode(rawValue: reason) != nil || reason == APNSReason.none.name
        var kind = LetterKind(reason: isKnown ? reason : "other", topic: letter.source.topic)
        if outbox.written[kind] == nil, outbox.written.count >= LetterKind.countMax {
            kind.topic = ""
        }
        outbox.written[kind, default: 0] += 1
    }

    /// Writes a letter without gathering further tokens, such as for a deferral that Kafka does not
    /// take.
    mutating func writeAtOnce(
        _ letter: DeadLetter, claims: [OffsetClaim]
    ) {
        let room = room(
            for: letter, originalBytes: letter.original?.size ?? 0, claims: claims.count)
        if room == .none {
            merge(letter, claims: claims)
        } else {
            write(letter, claims: claims)
        }
    }

    private mutating func merge(
        _ letter: DeadLetter, claims: [OffsetClaim]
    ) {
        counters.failuresMerged += letter.repeats ?? max(1, letter.targets.count)
        outbox.merged.add(letter, claims: claims, &tracker)
    }

    /// Writes the dead letter of a record that cannot be read; the claim passes to it.
    mutating func writeUnreadable(
        _ event: UnreadableEvent, _ read: RecordRead, _ claim: OffsetClaim
    ) {
        let (record, now) = (event.record, read.now)
        var letter = DeadLetter(
            reason: event.reason.code, source: source(read.position), firstAt: now.wall,
            lastAt: now.wall, subject: event.subject)
        letter.message = event.reason.message
        letter.correlation = event.correlation
        let size = (record.key?.count ?? 0) + (record.value?.count ?? 0)
        let headerBytes = event.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
        let room = room(for: letter, originalBytes: size + headerBytes, claims: 1)
        if room == .none { return merge(letter, claims: [claim]) }
        if room == .whole, size <= settings.live.deadLetterEventBytesMax {
            letter.original = DeadLetter.Original(
                key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
                headers: event.headers)
        } else {
            letter.isOriginalLeftOut = true
        }
        // A key that is not a subject may have any length.
        let isShort = record.key.map { $0.count <= RecordLimits.subjectBytesMax } ?? true
        write(letter, key: isShort ? record.key.map { Array($0) } ?? [] : nil, claims: [claim])
    }

    private static func minimal(_ letter: DeadLetter) -> [UInt8] {
        var minimal = letter
        minimal.leaveOutOriginal()
        minimal.targets = []
        minimal.subject = []
        minimal.installation = nil
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
