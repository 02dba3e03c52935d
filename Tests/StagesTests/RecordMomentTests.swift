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
            let read = try decodeEvent(value, binding: binding).time
            #expect(read == (isTaken ? WallTime(rfc3339: time) : IntakeFixtures.now))
            #expect(try notes(of: value, binding).totals[.timeAhead] == (isTaken ? nil : 1))
        }
    }

    @Test(
        arguments: [
            // The record's time, the event's and the end of its life, in days from now.
            (-10, -10, -9, true), (-10, -11, -9, true), (-10, -9, -8, true), (-10, 0, 1, true),
            (-10, 1, -9, false), (3, 3, 4, true), (3, 0, 4, true), (3, 4, 4, false),
        ] as [(Int64, Int64, Int64, Bool)])
    func `a time is held against the later one of its record's and the clock`(
        written: Int64, given: Int64, end: Int64, isTaken: Bool
    ) throws {
        let now = IntakeFixtures.now
        let (record, time) = (now + .seconds(written * 86_400), now + .seconds(given * 86_400))
        let event = try decodeEvent(#"{"time":"\#(time.rfc3339)"}"#, timestamp: record)
        #expect(event.time == (isTaken ? time : record))
        #expect(event.life == .seconds(end * 86_400))
    }

    /// No timestamp, one that is no time, and seconds since 1970 in the place of milliseconds.
    private static let noTimestamps: [Int64] = [.min, -1, 0, 1, 1_795_262_400, 978_307_199_999]

    @Test(arguments: noTimestamps)
    func `a time is held against the clock where its record has none`(none: Int64) throws {
        let now = IntakeFixtures.now
        let record = WallTime(milliseconds: none)
        for seconds in [-86_400, 0, 3600, 3601, 86_400] as [Int64] {
            let given = now + .seconds(seconds)
            let event = try decodeEvent(#"{"time":"\#(given.rfc3339)"}"#, timestamp: record)
            let time = seconds > 3600 ? now : given
            #expect(event.time == time)
            #expect(event.life == max(time, now) - now + .seconds(86_400))
        }
        let event = try decodeEvent("{}", timestamp: record)
        #expect(event.time == now && event.life == .seconds(86_400))
    }

    @Test(arguments: ["0000-01-01T00:00:00Z", "1969-07-20T20:17:40Z", "9999-12-31T23:59:59Z"])
    func `no timestamp of a record and no instant in it overflow`(instant: String) throws {
        let given = try #require(WallTime(rfc3339: instant))
        for timestamp in Self.noTimestamps + [978_307_200_000, .max] {
            let written = WallTime(milliseconds: timestamp)
            let isPast = given < written || timestamp < 978_307_200_000
            #expect(
                RecordMoment.isFar(given, after: written, .ofEvent)
                    == (timestamp >= 0 && given > written))
            #expect(try registeredAt(instant, written) == (isPast ? given : written))
            #expect(try suppressedAt(instant, written) == (isPast ? given : written))
            let event = try decodeEvent(#"{"time":"\#(instant)"}"#, timestamp: written)
            #expect(event.time <= IntakeFixtures.now + .seconds(30 * 86_400))
        }
    }

    @Test func `a suppression holds for the registration that it is of`() throws {
        let registered = IntakeFixtures.now
        let ahead = (registered + .seconds(3600)).rfc3339
        let shown = try registeredAt(ahead, registered)
        #expect(shown.rfc3339 == ahead)
        // The clock of the worker that writes it may be behind that of the registrar.
        for behind in [0, 1, 3600] as [Int64] {
            #expect(try suppressedAt(ahead, registered + .seconds(-behind)) == shown)
        }
        // No registration has such an instant.
        let later = registered + .seconds(3601)
        #expect(try registeredAt(later.rfc3339, registered) == registered)
        let far = registered + .seconds(7201)
        #expect(try suppressedAt(far.rfc3339, registered) == registered)
    }

    /// What counts of the instant in a registration.
    private func registeredAt(_ instant: String, _ timestamp: WallTime) throws -> WallTime {
        let value = #"{"v":1,"registeredAt":"\#(instant)","targets":[]}"#
        var decoder = RegistrationDecoder(routing: IntakeFixtures.routing())
        var registration = Registration()
        try lending(Array(IntakeSamples.registrationKey.utf8)) { key in
            try lending(Array(value.utf8)) { value in
                _ = try decoder.decode(
                    key: key, value: value, timestamp: timestamp, into: &registration)
            }
        }
        return registration.registeredAt
    }

    /// What counts of the instant in a suppression.
    private func suppressedAt(_ instant: String, _ timestamp: WallTime) throws -> WallTime? {
        let value = #"{"v":1,"status":410,"reason":"Unregistered","registeredAt":"\#(instant)"}"#
        var decoder = TokenRecordDecoder(routing: IntakeFixtures.routing())
        var tokenKey = TokenKey()
        return try lending(Array(IntakeSamples.tokenKey.utf8)) { key in
            try lending(Array(value.utf8)) { value in
                try decoder.suppression(
                    key: key, value: value, timestamp: timestamp, into: &tokenKey)?.registeredAt
            }
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
