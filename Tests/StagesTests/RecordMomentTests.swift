// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Moment of a record` {
    /// The time of the record, 2026-11-21T12:00:00Z.
    private static let now = IntakeFixtures.now.seconds

    private static func refused(
        _ members: String, event: String = "update", timestamp: String? = nil
    ) -> String? {
        let aps =
            #"{"timestamp":\#(timestamp ?? "\(now)"),"event":"\#(event)","content-state":{}\#(members)}"#
        do {
            _ = try decodeEvent(#"{"payload":{"aps":\#(aps)}}"#)
            return nil
        } catch {
            return (error as? UnreadableRecord)?.message ?? "\(error)"
        }
    }

    @Test(
        arguments: [
            ("1795262400", nil), ("1795176001", nil), ("1795265999", nil),
            ("1795175999", "within a day"), ("1795266001", "within a day"),
            ("1795262400000", "milliseconds?"), ("1795262400123", "milliseconds?"),
            ("1795262400000000", "microseconds?"), ("1795262400000000000", "nanoseconds?"),
            ("816955200", ": seconds since 2001?"), ("816955200000", "milliseconds since 2001?"),
            ("1", "within a day"), ("0", "whole seconds"), ("-1", "whole seconds"),
            ("1795262400.5", "a number with a fraction"),
            ("1.7952624e9", "a number with a fraction"),
            (#""1795262400""#, "a text of 10 digits"),
            (#""2026-11-21T12:00:00Z""#, "a text of 20 bytes"),
            ("100000000000000000000", "an integer of 21 digits"), ("null", "null"),
        ] as [(String, String?)])
    func `a Live Activity's timestamp is near its record's time`(
        timestamp: String, problem: String?
    ) {
        let message = Self.refused("", timestamp: timestamp)
        #expect(problem == nil ? message == nil : message?.contains(problem!) ?? false)
    }

    @Test(
        arguments: [
            ("1795262400", nil), ("1795262400.5", nil), ("1795867200", nil), ("1", nil), ("0", nil),
            ("null", nil), ("1795867201", "within 7 days"), ("1795262460000", "milliseconds?"),
            ("1795262460000000", "microseconds?"), ("816955260", "seconds since 2001?"),
            ("9e99", "within 7 days"), (#""1795262460""#, "a text of 10 digits"),
        ] as [(String, String?)])
    func `a Live Activity's dates are not far after its record's time`(
        date: String, problem: String?
    ) {
        for (name, event) in [("stale-date", "update"), ("dismissal-date", "end")] {
            let message = Self.refused(#","\#(name)":\#(date)"#, event: event)
            #expect(problem == nil ? message == nil : message?.contains(problem!) ?? false)
        }
    }

    @Test(
        arguments: [
            ("1795262400000", "an integer of 13 digits: milliseconds?"),
            ("1795262400", "an integer of 10 digits: seconds?"),
            (#""1795262400000""#, "a text of 13 digits: milliseconds?"),
            ("1795262400000000", "microseconds?"),
            ("1795262400.5", "a number with a fraction: seconds?"),
            ("{}", "an empty object"), (#""yesterday""#, "a text of 9 bytes"), ("7", "1 digit"),
            ("true", "true or false"), (#""2026-11-21""#, "a text of 10 bytes"),
        ])
    func `an instant that is no text of RFC 3339 is told with its unit`(
        value: String, problem: String
    ) {
        for name in ["time", "expiresAt"] {
            do {
                _ = try decodeEvent(#"{"\#(name)":\#(value)}"#)
                Issue.record("it was read")
            } catch {
                let message = (error as? UnreadableRecord)?.message ?? ""
                #expect(message.hasSuffix(problem) && message.contains(name), "\(message)")
            }
        }
    }

    @Test(
        arguments: [
            ("2026-11-21T12:00:00Z", true), ("2026-11-21T13:00:00Z", true),
            ("2026-11-21T13:00:01Z", false), ("2026-11-22T12:00:00Z", false),
            ("9999-12-31T23:59:59Z", false), ("1970-01-01T00:00:00Z", true),
            ("2026-11-20T12:00:00Z", true), ("2027-11-21T12:00:00Z", false),
            ("2026-11-21T16:00:00+01:00", false), ("2026-11-21T13:00:00+01:00", true),
        ] as [(String, Bool)])
    func `a time far after its record's is passed over and counted`(
        time: String, isTaken: Bool
    ) throws {
        let values: [(String, TopicBinding)] = [
            (#"{"time":"\#(time)"}"#, .standard),
            (
                #"{"specversion":"1.0","id":"1","source":"s","type":"t","time":"\#(time)"}"#,
                TopicBinding(decode: .cloudevents)
            ),
        ]
        for (value, binding) in values {
            var decoder = try EventDecoder(
                bindings: [binding], routing: IntakeFixtures.routing(), settings: EventSettings())
            let read = try lending(Array(value.utf8)) { value in
                try lending(Array("k".utf8)) { key in
                    try decoder.decode(
                        EventRecord(
                            binding: 0, key: key, value: value, timestamp: IntakeFixtures.now),
                        now: IntakeFixtures.now, header: { _ in nil })?.time
                }
            }
            #expect(read == (isTaken ? WallTime(rfc3339: time) : IntakeFixtures.now))
            #expect(decoder.notes[0].totals[.timeAhead] == (isTaken ? nil : 1))
        }
    }

    @Test(
        arguments: [
            // The record's time and the event's, in days from now.
            (-10, -10, true), (-10, -11, true), (-10, -9, false), (-10, 0, false), (-10, 1, false),
            (3, 3, true), (3, 0, true), (3, 4, false),
        ] as [(Int64, Int64, Bool)])
    func `a time is held against its record's, whenever that is read`(
        written: Int64, given: Int64, isTaken: Bool
    ) throws {
        let now = IntakeFixtures.now
        let (record, time) = (now + .seconds(written * 86_400), now + .seconds(given * 86_400))
        let event = try decodeEvent(#"{"time":"\#(time.rfc3339)"}"#, timestamp: record)
        #expect(event.time == (isTaken ? time : record))
    }

    @Test func `a time is held against the clock where its record has none`() throws {
        let now = IntakeFixtures.now
        for none in [0, -1] as [Int64] {
            let record = WallTime(milliseconds: none)
            #expect(
                try decodeEvent(#"{"time":"\#(now.rfc3339)"}"#, timestamp: record).time == now)
            let ahead = now + .seconds(3601)
            let event = try decodeEvent(#"{"time":"\#(ahead.rfc3339)"}"#, timestamp: record)
            #expect(event.time == (none < 0 ? now : record))
        }
    }

    @Test func `what a worker reads late is held against its record's time`() throws {
        let value =
            #"{"pushType":"liveactivity","payload":{"aps":{"timestamp":1795262400,"event":"end","#
            + #""content-state":null}}}"#
        let late = IntakeFixtures.now + .seconds(20 * 86_400)
        var decoder = try EventDecoder(
            bindings: [.standard], routing: IntakeFixtures.routing(), settings: EventSettings())
        let payload = try lending(Array(value.utf8)) { value in
            try lending(Array("k".utf8)) { key in
                try decoder.decode(
                    EventRecord(binding: 0, key: key, value: value, timestamp: IntakeFixtures.now),
                    now: late, header: { _ in nil })?.payload
            }
        }
        #expect(payload?.activity?.event == .end)
    }
}
