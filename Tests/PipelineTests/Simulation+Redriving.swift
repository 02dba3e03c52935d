// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// Events of more tokens than `planning.fanOutMax`: withheld, and redriven by an operator.
extension Simulation {
    /// Writes a withheld record again, as its letter has it. Its life begins again.
    mutating func redrive() throws(SimulationFailure) {
        let letter = kafka.withheld.remove(at: operators.below(kafka.withheld.count))
        let index = kafka.partitions.firstIndex {
            letter.source.text.hasPrefix($0.name + "/")
        }!
        let text = { (bytes: [UInt8]?) in bytes.map { String(decoding: $0, as: UTF8.self) } }
        let original = letter.original!
        let written = kafka.produced[letter.source.text]?.first {
            $0.key == text(original.key) && $0.value == text(original.value)
        }
        guard let written, var event = written.event else {
            throw SimulationFailure(text: "a letter has another record than was withheld")
        }
        event.expiresAt = now.wall + (event.expiresAt - written.timestamp)
        let offset = kafka.partitions[index].end
        kafka.append(
            SimulatedEventRecord(
                number: traffic.nextNumber(), offset: offset, key: written.key,
                value: written.value, timestamp: now.wall, event: event, releases: letter.source),
            to: index)
        kafka.partitions[index].end = offset + 1
        coverage.eventsReleased += 1
        tell("an operator releases \(letter.source.text) as \(index)/\(offset)")
    }
}

extension SimulatedKafka {
    /// A dead letter that a worker has written; those that can be released are kept.
    mutating func append(letter value: [UInt8]) {
        var decoder = DeadLetterDecoder()
        let letter = value.withUnsafeBytes { try? decoder.letter($0) }
        guard let letter, letter.reason == UnreadableCode.fanOutTooLarge.rawValue,
            letter.original != nil, letter.failures == nil
        else { return }
        withheld.append(letter)
    }

    /// A record of a producer.
    mutating func append(_ record: SimulatedEventRecord, to index: Int) {
        partitions[index].records.append(record)
        // Letters name records by their places, of which an election may give one twice.
        produced["\(partitions[index].name)/\(record.offset)", default: []].append(record)
        // After a leader that lagged behind was elected, a record may get an offset that is committed:
        // no consumer reads it (docs/delivery.md).
        if record.offset >= partitions[index].stored { unread.insert(record.number) }
    }
}
