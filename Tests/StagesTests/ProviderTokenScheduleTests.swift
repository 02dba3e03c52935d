// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Simdjson
internal import Testing

/// - Parameter set: by how many minutes the wall clock has been set since the start.
private func minute(_ minutes: Double, set: Double = 0) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: Int64(minutes * 60e9)),
        wall: WallTime(milliseconds: 1_763_712_000_000 + Int64((minutes + set) * 60e3)))
}

@Suite struct `The schedule of provider tokens` {
    private func mintedAtStart() -> ProviderTokenSchedule {
        var schedule = ProviderTokenSchedule()
        schedule.minted(at: minute(0))
        return schedule
    }

    @Test func `the token schedule mints at first use`() {
        let schedule = ProviderTokenSchedule()
        #expect(schedule.decision(for: .use, at: minute(0)) == .mint)
    }

    @Test func `the age of a token is that by the monotonic clock`() {
        #expect(ProviderTokenSchedule().age(at: minute(5)) == nil)
        #expect(mintedAtStart().age(at: minute(5, set: -600)) == .seconds(300))
    }

    @Test func `the token schedule keeps a token for 45 minutes`() {
        var schedule = ProviderTokenSchedule()
        schedule.minted(at: minute(1))
        #expect(schedule.decision(for: .use, at: minute(1)) == .keep)
        #expect(schedule.decision(for: .use, at: minute(45.9)) == .keep)
        #expect(schedule.decision(for: .use, at: minute(46)) == .mint)
    }

    @Test func `the token schedule mints on a refusal, but not within 20 minutes`() {
        let schedule = mintedAtStart()
        #expect(
            schedule.decision(for: .refusal, at: minute(19.5))
                == .tooEarly(age: .seconds(19.5 * 60)))
        #expect(schedule.decision(for: .refusal, at: minute(20)) == .mint)
    }

    @Test(arguments: [(2, 43), (2, 600), (44, 1), (2, -3.1), (10, -600)] as [(Double, Double)])
    func `the schedule mints when the token is too old or of the future by a set clock`(
        age: Double, set: Double
    ) {
        #expect(mintedAtStart().decision(for: .use, at: minute(age, set: set)) == .mint)
    }

    @Test(
        arguments: [(2, 42.9), (0.9, 600), (0.9, -600), (5, -5.9), (44, 0.9)] as [(Double, Double)])
    func `the token schedule keeps a token good by both clocks, and any for a minute`(
        age: Double, set: Double
    ) {
        #expect(mintedAtStart().decision(for: .use, at: minute(age, set: set)) == .keep)
    }

    @Test(arguments: [1.1, -1.1, 30, -30])
    func `the token schedule mints on a refusal when the wall clock was set since`(set: Double) {
        let schedule = mintedAtStart()
        #expect(schedule.decision(for: .refusal, at: minute(0.1, set: set)) == .mint)
    }
}

@Suite struct `The body of an error answer` {
    private func read(_ text: String) -> AnswerBody {
        var parser = JSONParser(bytesMax: 4096)
        return Array(text.utf8).withUnsafeBytes { AnswerBody($0, parser: &parser) }
    }

    @Test func `an error answer gives Apple's reason and the timestamp in milliseconds`() {
        let body = read(#"{"reason":"Unregistered","timestamp":1763712000123}"#)
        #expect(body.reason == .unregistered)
        #expect(body.timestamp == WallTime(milliseconds: 1_763_712_000_123))
        #expect(body.unknownReason == nil)
    }

    @Test func `an error answer may come in another order, with spaces and with more in it`() {
        let body = read(#" { "timestamp" : 5, "more": [1, {}], "reason" : "BadTopic" } "#)
        #expect(body.reason == .badTopic)
        #expect(body.timestamp?.milliseconds == 5)
    }

    @Test func `an error answer keeps the text of a reason that is not in the list`() {
        let body = read(#"{"reason":"TooManyCooks"}"#)
        #expect(body.reason == .unknown)
        #expect(body.unknownReason == "TooManyCooks")
    }

    @Test(arguments: [
        "", "{", "<html>502</html>", "[]", "null", #"{"reason":7}"#, #"{"reason":null}"#, "{}",
        #"{"reason":"BadTop"#,
    ])
    func `an error answer gives no reason when it is not APNs's`(text: String) {
        let body = read(text)
        #expect(body.reason == .none)
        #expect(body.unknownReason == nil)
        #expect(body.timestamp == nil)
    }
}
