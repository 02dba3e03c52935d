// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Simdjson
internal import Testing

private func minute(_ minutes: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(minutes * 60e9))
}

@Suite struct `The schedule of provider tokens` {
    @Test func `mints at first use`() {
        let schedule = ProviderTokenSchedule()
        #expect(schedule.decision(for: .use, at: minute(0)) == .mint)
    }

    @Test func `keeps a token for 45 minutes`() {
        var schedule = ProviderTokenSchedule()
        schedule.minted(at: minute(1))
        #expect(schedule.decision(for: .use, at: minute(1)) == .keep)
        #expect(schedule.decision(for: .use, at: minute(45.9)) == .keep)
        #expect(schedule.decision(for: .use, at: minute(46)) == .mint)
    }

    @Test func `mints on a refusal, but not within 20 minutes`() {
        var schedule = ProviderTokenSchedule()
        schedule.minted(at: minute(0))
        #expect(schedule.decision(for: .refusal, at: minute(19.9)) == .tooEarly)
        #expect(schedule.decision(for: .refusal, at: minute(20)) == .mint)
    }

    @Test func `mints at once for a new key`() {
        var schedule = ProviderTokenSchedule()
        schedule.minted(at: minute(0))
        schedule.keyReplaced()
        #expect(schedule.decision(for: .use, at: minute(1)) == .mint)
    }
}

@Suite struct `The body of an error answer` {
    private func read(_ text: String) -> AnswerBody {
        var parser = JSONParser(bytesMax: 4096)
        return Array(text.utf8).withUnsafeBytes { AnswerBody($0, parser: &parser) }
    }

    @Test func `gives Apple's reason and the timestamp in milliseconds`() {
        let body = read(#"{"reason":"Unregistered","timestamp":1763712000123}"#)
        #expect(body.reason == .unregistered)
        #expect(body.timestamp == WallTime(milliseconds: 1_763_712_000_123))
        #expect(body.unknownReason == nil)
    }

    @Test func `may come in another order, with spaces and with more in it`() {
        let body = read(#" { "timestamp" : 5, "more": [1, {}], "reason" : "BadTopic" } "#)
        #expect(body.reason == .badTopic)
        #expect(body.timestamp?.milliseconds == 5)
    }

    @Test func `keeps the text of a reason that is not in the list`() {
        let body = read(#"{"reason":"TooManyCooks"}"#)
        #expect(body.reason == .unknown)
        #expect(body.unknownReason == "TooManyCooks")
    }

    @Test(arguments: [
        "", "{", "<html>502</html>", "[]", "null", #"{"reason":7}"#, #"{"reason":null}"#, "{}",
        #"{"reason":"BadTop"#,
    ])
    func `gives no reason when it is not APNs's`(text: String) {
        let body = read(text)
        #expect(body.reason == .none)
        #expect(body.unknownReason == nil)
        #expect(body.timestamp == nil)
    }
}
