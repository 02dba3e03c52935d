// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

/// Prints what a record costs, so that a step shows in the log of a run; the figures that are kept
/// come from the benchmarks.
@Suite struct `Speed of intake` {
    @Test func `records of each kind are read again and again`() throws {
        var decoder = try EventDecoder(
            bindings: [.standard], routing: IntakeFixtures.routing(), settings: EventSettings())
        let event = #"{"v":1,"subject":"door-42","time":"2026-11-21T06:12:00.123Z","ttlSeconds":9}"#
        for (name, value) in [("key only", nil), ("JSON event", Array(event.utf8))] {
            try lending(Array("door-42".utf8)) { key in
                try lending(value) { value in
                    let record = EventRecord(
                        binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
                    try measure(name) {
                        try decoder.decode(record, now: IntakeFixtures.now) { _ in nil }
                            .map { $0.subject.count == 7 } ?? false
                    }
                }
            }
        }
        var registrations = RegistrationDecoder(routing: IntakeFixtures.routing())
        var registration = Registration()
        try lending(Array(IntakeSamples.registrationKey.utf8)) { key in
            try lending(Array(IntakeSamples.goodRegistrations[0].0.utf8)) { value in
                try measure("registration of two rows") {
                    _ = try registrations.decode(
                        key: key, value: value, timestamp: IntakeFixtures.now, into: &registration)
                    return registration.rows.count == 2
                }
            }
        }
    }

    private func measure(_ name: String, _ read: () throws -> Bool) rethrows {
        let rounds = 2000
        var right = 0
        let taken = try ContinuousClock().measure {
            for _ in 0..<rounds where try read() { right += 1 }
        }
        #expect(right == rounds)
        print("intake: \(name): \(taken.nanoseconds / Int64(rounds)) ns")
    }
}
