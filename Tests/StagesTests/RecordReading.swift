// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

/// Reads a record of any format with the decoder that a worker has for it.
enum RecordReading {
    typealias Record = RecordFormat.Example

    /// Why the decoder refuses it; nil where it reads it.
    static func problem(of record: Record, as format: RecordFormat) -> UnreadableCode? {
        refusal {
            try lending(record.key) { key in
                try lending(record.value) { value in try read(key, value, format) }
            }
        }
    }

    private static func read(
        _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?, _ format: RecordFormat
    ) throws {
        let routing = IntakeFixtures.routing([RecordFormat.exampleApp])
        switch format.name {
        case "event":
            var decoder = try EventDecoder(
                bindings: [.standard], routing: routing, settings: EventSettings())
            let record = EventRecord(
                binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
            _ = try decoder.decode(record, now: IntakeFixtures.now) { _ in nil }
        case "registration":
            var decoder = RegistrationDecoder(routing: routing)
            var registration = Registration()
            _ = try decoder.decode(
                key: key, value: value, timestamp: IntakeFixtures.now, into: &registration)
        case "suppression":
            var decoder = TokenRecordDecoder(routing: routing)
            var tokenKey = TokenKey()
            _ = try decoder.suppression(
                key: key, value: value, timestamp: IntakeFixtures.now, into: &tokenKey)
        case "deferred":
            var decoder = TokenRecordDecoder(routing: routing)
            var tokenKey = TokenKey()
            _ = try decoder.deferred(key: key, value: value, into: &tokenKey)
        case "restriction":
            var decoder = RestrictionDecoder()
            _ = try decoder.decode(key: key, value: value)
        default:
            var decoder = DeadLetterDecoder()
            _ = try decoder.letter(value)
        }
    }
}

/// What is noted of a record that comes so often.
func notes(
    of value: String, _ binding: TopicBinding, times: Int = 1
) throws -> RecordNotes {
    var decoder = try EventDecoder(
        bindings: [binding], routing: IntakeFixtures.routing(), settings: EventSettings())
    lending(Array("k".utf8)) { key in
        lending(Array(value.utf8)) { value in
            let record = EventRecord(
                binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
            for _ in 0..<times {
                // Those of what cannot be read, or is left out, count too.
                _ = try? decoder.decode(record, now: IntakeFixtures.now, header: { _ in nil })
            }
        }
    }
    return decoder.notes[0]
}
