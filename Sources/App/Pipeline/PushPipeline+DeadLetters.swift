// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

/// Dead letters wait for Kafka within `deadLetterBytesMax`. While their topic takes them, reading
/// waits for it. While it does not, everything else goes on: new letters go without their events
/// once half of the room is taken, and failures are merged once all of it is. The offsets of what
/// failed wait in any case.
extension PushPipeline {
    // MARK: Room

    /// Letters that gather tokens, and those that Kafka has not acknowledged.
    var letterBytes: Int { tickets.usage(of: .deadLetters).bytes + letters.bytes }

    /// The event of any letter fits, or letters are not what reading waits for.
    var hasRoomForLetters: Bool { roomForLetters > 0 }

    /// So many events may be read in one go as far as their letters are concerned.
    var roomForLetters: Int {
        if lettersStalled { return .max }
        let most = settings.deadLetterEventBytesMax + TicketTable.overhead
        let least = letterBytes == 0 ? 1 : 0
        return max(least, (wholeLetterBytesMax - letterBytes) / most)
    }

    /// Above this letters do without their events.
    private var wholeLetterBytesMax: Int { settings.deadLetterBytesMax / 2 }

    private enum LetterRoom { case whole, coordinates, none }

    /// - Parameter originalBytes: of what the letter would hold of its event.
    private func room(for letter: DeadLetter, originalBytes: Int, holds: Int) -> LetterRoom {
        let least = letterBytes + DeadLetterDrafts.cost(ofCoordinates: letter, holds: holds)
        if least + originalBytes <= wholeLetterBytesMax { return .whole }
        return least <= settings.deadLetterBytesMax ? .coordinates : .none
    }

    /// Looks whether Kafka takes letters, and writes what was merged when there is room again.
    mutating func watchLetters(now: Now) {
        lookForStall(now: now)
        while letterBytes <= wholeLetterBytesMax, let entry = merged.takeOldest() {
            write(entry.letter, holds: entry.holds)
        }
    }

    /// Reading waits for letters that go out fast. A topic that is away or slow must not slow down what
    /// is none of its business: until half of what it has is gone, nothing waits for it.
    private mutating func lookForStall(now: Now) {
        let isFull =
            lettersFull == nil ? roomForLetters == 0 : letterBytes > wholeLetterBytesMax / 2
        guard isFull else {
            lettersFull = nil
            lettersStalled = false
            return
        }
        let closed = tickets.letterBytesClosed
        if let full = lettersFull {
            guard now.monotonic - full.since >= Self.letterPatience else { return }
            lettersStalled = closed - full.closed < wholeLetterBytesMax / 8
        }
        lettersFull = LettersFull(since: now.monotonic, closed: closed)
    }

    /// Less than reading may pause for without leaving its partitions; many times what an
    /// acknowledgement takes. With an eighth of the room in that time letters count as fast: 4 MiB/s.
    private static var letterPatience: Duration { .milliseconds(500) }

    // MARK: Writing

    /// Puts a failed push into the letter that says the same of it. Its claims pass to the letter.
    mutating func draft(_ letter: DeadLetter, holds: [Hold], now: Now) {
        var letter = letter
        switch room(for: letter, originalBytes: letter.original?.size ?? 0, holds: holds.count) {
        case .whole: break
        case .coordinates: letter.leaveOutOriginal()
        case .none: return merge(letter, holds: holds)
        }
        if let full = letters.add(letter, holds: holds, now: now.monotonic) {
            write(full.letter, holds: full.holds)
        }
    }

    /// Writes the letters whose time has come; all of them when the worker is about to stop.
    package mutating func flushDeadLetters(now: Now, all: Bool) {
        while let draft = letters.takeDue(now: now.monotonic, all: all) {
            write(draft.letter, holds: draft.holds)
        }
    }

    /// - Parameter key: nil for the subject.
    mutating func write(_ letter: DeadLetter, key: [UInt8]? = nil, holds: [Hold]) {
        counters.deadLettersWritten += 1
        var letter = letter
        var value = DeadLetterEncoder.value(
            letter, eventBytesMax: settings.deadLetterEventBytesMax)
        // As text it may be several times as long.
        if letter.original != nil, letterBytes + value.count > wholeLetterBytesMax {
            letter.leaveOutOriginal()
            value = DeadLetterEncoder.value(letter, eventBytesMax: 0)
        }
        let canSayLess = letter.original != nil || !letter.targets.isEmpty
        records.append(
            tickets.issue(
                topic: .deadLetters, key: key ?? self.key(of: letter), value: value, holds: holds,
                fallback: canSayLess ? Self.minimal(letter) : nil))
    }

    /// One that is full already, such as of a deferral that Kafka does not take.
    mutating func writeAtOnce(_ letter: DeadLetter, holds: [Hold]) {
        let room = room(
            for: letter, originalBytes: letter.original?.size ?? 0, holds: holds.count)
        if room == .none { merge(letter, holds: holds) } else { write(letter, holds: holds) }
    }

    private mutating func merge(_ letter: DeadLetter, holds: [Hold]) {
        counters.failuresMerged += max(1, letter.targets.count)
        let surplus = merged.add(letter, holds: holds) { ledger.isTable($0.track) }
        for hold in surplus { ledger.release(hold) }
    }

    /// A record that cannot be read is a dead letter with the reason; the claim passes to it.
    mutating func writeUnreadable(
        _ record: borrowing EventRecord, _ headers: [(name: String, value: [UInt8])],
        _ reason: UnreadableRecord, hold: Hold, at position: RecordPosition, now: Now
    ) {
        var letter = DeadLetter(
            reason: reason.code, source: source(position), firstAt: now.wall, lastAt: now.wall)
        letter.message = reason.message
        let size = (record.key?.count ?? 0) + (record.value?.count ?? 0)
        let headerBytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
        let room = room(for: letter, originalBytes: size + headerBytes, holds: 1)
        if room == .none { return merge(letter, holds: [hold]) }
        if room == .whole, size <= settings.deadLetterEventBytesMax {
            letter.original = DeadLetter.Original(
                key: record.key.map { Array($0) }, value: record.value.map { Array($0) },
                headers: headers)
        } else {
            letter.isOriginalLeftOut = true
        }
        // One that is no subject of ours may have any length.
        let isShort = record.key.map { $0.count <= RecordLimits.subjectBytesMax } ?? true
        write(letter, key: isShort ? record.key.map { Array($0) } ?? [] : nil, holds: [hold])
    }

    private static func minimal(_ letter: DeadLetter) -> [UInt8] {
        var minimal = letter
        minimal.leaveOutOriginal()
        minimal.targets = []
        minimal.subject = []
        return DeadLetterEncoder.value(minimal, eventBytesMax: 0)
    }
}
