// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What a dead letter says, and when it is written.
@Suite struct `Dead letters of the pipeline` {
    /// Controls 1, 2, … that all show `hot`.
    private func fixture(
        controls: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        for number in 1...controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["hot"])
        }
        return fixture
    }

    private func letters(_ fixture: PipelineFixture) -> [ProducedRecord] {
        fixture.takeRecords().filter { $0.topic == .deadLetters }
    }

    private func tokens(of letter: ProducedRecord) -> Int {
        letter.value.split(separator: #""token":"#).count - 1
    }

    private func reject(_ pushes: [SentPush], of fixture: PipelineFixture) {
        for push in pushes { fixture.answer(push, 400, .badMessageId) }
    }

    // MARK: What they say

    @Test func `dead letters name no subject in place of one that nobody shows any more`() throws {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door", "lamp"])
        fixture.event("door")
        let push = fixture.take()
        fixture.registerControl("A", [1], shows: ["lamp"])
        // It is given the number that the other had.
        fixture.registerControl("B", [2], shows: ["hall"])
        reject(push, of: fixture)
        fixture.pass(.seconds(1))
        let letter = try #require(letters(fixture).first)
        #expect(letter.key == "events-0/0/0")
        #expect(!letter.value.contains(#""subject":"#))
    }

    @Test func `dead letters are one for each status, also of one reason`() {
        let fixture = fixture(controls: 3)
        fixture.event("hot")
        for (push, status) in zip(fixture.take(), [400, 404, 404] as [UInt16]) {
            fixture.answer(push, status, .badMessageId)
        }
        fixture.pass(.seconds(1))
        let letters = letters(fixture)
        #expect(letters.map(tokens) == [1, 2])
        #expect(letters.first?.value.contains(#""status":400"#) == true)
        #expect(letters.last?.value.contains(#""status":404"#) == true)
    }

    @Test func `dead letters of a payload say under which identifier it was to collapse`() throws {
        let fixture = fixture()
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("score", EventValue.alert("a", collapseID: "game"))
        reject(fixture.take(), of: fixture)
        fixture.pass(.seconds(1))
        let letter = try #require(letters(fixture).first).value
        #expect(letter.contains(#""collapseID":"game""#))
        #expect(letter.contains(#"\"alert\":\"a\""#))
    }

    @Test func `dead letters hold each token's own payload, whatever oldest event they share`()
        throws
    {
        let fixture = fixture()
        fixture.register("D1", [.device([0xD1], shows: ["team", "vip"])])
        fixture.register("D2", [.device([0xD2], shows: ["team"])])
        // Read before either push is handed over: what is for both subjects is one push.
        for (subject, text) in [("team", "for all"), ("vip", "for one")] {
            fixture.event(subject, EventValue.alert(text, collapseID: "game"))
        }
        reject(fixture.take(), of: fixture)
        fixture.pass(.seconds(1))
        let letters = try letters(fixture).map { try $0.letter() }
        #expect(letters.count == 2)
        for letter in letters {
            let isVIP = letter.targets.map(\.token) == [[0xD1]]
            #expect(isVIP || letter.targets.map(\.token) == [[0xD2]])
            let payload = String(decoding: letter.original?.value ?? [], as: UTF8.self)
            #expect(payload.contains(isVIP ? "for one" : "for all"))
            let vip = DeadLetter.Source(topic: "events-0", partition: 0, offset: 1)
            #expect(letter.payloadSource == (isVIP ? vip : nil))
            #expect(letter.source.offset == 0, "the oldest event")
        }
    }

    @Test func `dead letters name the event whose payload they hold, also of a deferred push`()
        throws
    {
        let fixture = fixture {
            $0.holdMax = .seconds(10)
            $0.retryBackoff = Backoff(least: .seconds(60), most: .seconds(60))
        }
        fixture.register("D", [.device([9], shows: ["score"])])
        for text in ["a", "b"] {
            fixture.event("score", EventValue.alert(text, collapseID: "game"))
        }
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        let deferred = DeferredFixture(fixture)
        #expect(deferred.produce().deferred.count == 1)
        deferred.assign()
        fixture.pass(.seconds(61))
        reject(fixture.take(), of: fixture)
        fixture.pass(.seconds(1))
        let letter = try #require(letters(fixture).first).letter()
        #expect(letter.source.offset == 0)
        #expect(letter.payloadSource?.offset == 1)
    }

    @Test func `dead letters are one for each app and subject, also of one oldest event`() throws {
        let fixture = PipelineFixture()
        fixture.event("door")
        fixture.event("lamp")
        // Which event a token that registers late is owed is not known: only the oldest that it
        // may be.
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.registerControl("B", [2], shows: ["lamp"])
        reject(fixture.take(), of: fixture)
        fixture.pass(.seconds(1))
        #expect(letters(fixture).map(\.key).sorted() == ["door", "lamp"])
    }

    @Test func `dead letters say a reason that is not known yet in Apple's word`() throws {
        let fixture = fixture()
        fixture.event("hot")
        let push = fixture.take()[0]
        fixture.slab.keepReason("BadMood", of: push.slot)
        fixture.answer(push, 400, .unknown)
        fixture.pass(.seconds(1))
        let letter = try #require(letters(fixture).first).value
        #expect(letter.contains(#""reason":"BadMood""#))
    }

    @Test func `dead letters say the first try of any of their pushes, also if it failed last`()
        throws
    {
        let fixture = fixture(controls: 2)
        let firstAt = fixture.now.wall
        fixture.event("hot")
        let early = fixture.take(1)
        fixture.pass(.seconds(2))
        reject(fixture.take(1), of: fixture)
        reject(early, of: fixture)
        fixture.pass(.seconds(1))
        let letters = letters(fixture)
        #expect(letters.map(tokens) == [2])
        #expect(letters[0].value.contains(#""firstAt":"\#(firstAt.rfc3339)""#))
    }

    @Test(arguments: [("{23456789", true), ("{234567890", false)])
    func `dead letters have an unreadable record that is just short enough, key and value`(
        value: String, isThere: Bool
    ) throws {
        let fixture = fixture { $0.deadLetterEventBytesMax = 12 }
        fixture.event("hot", value)
        let letter = try #require(letters(fixture).first).value
        #expect(letter.contains(#""event":"#) == isThere)
        #expect(letter.contains(#""eventLeftOut":true"#) != isThere)
    }

    @Test func `dead letters that are too large say the reason and the source, and no more`() throws
    {
        let fixture = fixture()
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("score", EventValue.alert("secret"))
        reject(fixture.take(), of: fixture)
        fixture.pass(.seconds(1))
        let letter = try #require(letters(fixture).first)
        for word in ["secret", "score", #""token":"09""#] { #expect(letter.value.contains(word)) }
        fixture.pipeline.tooLarge(letter.ticket)
        let small = try #require(letters(fixture).first).value
        for word in ["secret", "score", #""token":"09""#] { #expect(!small.contains(word)) }
        #expect(small.contains(#""reason":"BadMessageId""#))
        #expect(small.contains(#""eventLeftOut":true"#))
        #expect(small.contains(#""source":{"topic":"events-0","partition":0,"offset":0}"#))
    }

    // MARK: When they are written

    @Test func `dead letters of one token each are written at once`() {
        let fixture = fixture(controls: 2) { $0.deadLetterTokensMax = 1 }
        fixture.event("hot")
        reject(fixture.take(), of: fixture)
        #expect(letters(fixture).map(tokens) == [1, 1])
    }

    @Test func `dead letters never have more than five hundred tokens, whatever is asked for`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 1024
            settings.immediateFanOutMax = 600
            settings.deadLetterTokensMax = 600
        }
        fixture.checksEachCall = false
        for number in 0..<501 {
            let token = [UInt8(number >> 8), UInt8(number & 255)]
            fixture.registerControl("I\(number)", token, shows: ["hot"])
        }
        fixture.event("hot")
        reject(fixture.take(600), of: fixture)
        fixture.pass(.seconds(1))
        #expect(letters(fixture).map(tokens) == [500, 1])
    }

    @Test func `dead letters that follow a full one of their event wait for their own time`() {
        let fixture = fixture(controls: 3) { $0.deadLetterTokensMax = 2 }
        fixture.registerControl("O", [9], shows: ["own"])
        fixture.event("own")
        fixture.event("hot")
        let pushes = fixture.take()
        // Another event's letter is due before the full one would have been.
        reject(Array(pushes[..<1]), of: fixture)
        fixture.pass(.milliseconds(50))
        reject(Array(pushes[1...2]), of: fixture)
        #expect(letters(fixture).map(tokens) == [2])
        fixture.pass(.milliseconds(50))
        reject(Array(pushes[3...]), of: fixture)
        fixture.pass(.milliseconds(100))
        #expect(letters(fixture).map(\.key) == ["own"])
        fixture.pass(.milliseconds(50))
        #expect(letters(fixture).isEmpty, "the time of the full one is no other's")
        fixture.pass(.milliseconds(50))
        #expect(letters(fixture).map(tokens) == [1])
    }

    @Test func `dead letters are all written when the worker is about to stop`() {
        let fixture = fixture(controls: 2)
        for _ in 0..<2 {
            fixture.event("hot")
            reject(fixture.take(), of: fixture)
        }
        fixture.pipeline.flushDeadLetters(now: fixture.now, all: false)
        #expect(letters(fixture).isEmpty)
        fixture.pipeline.flushDeadLetters(now: fixture.now, all: true)
        #expect(letters(fixture).map(tokens) == [2, 2])
    }

    @Test func `dead letters wake the owner for the first of several`() {
        let fixture = fixture()
        let began = fixture.now.monotonic
        fixture.event("hot")
        reject(fixture.take(), of: fixture)
        fixture.pass(.milliseconds(100))
        fixture.event("hot")
        reject(fixture.take(), of: fixture)
        let due = fixture.pipeline.nextDue(now: fixture.now)
        #expect(due == began + .milliseconds(200))
        fixture.pass(.milliseconds(100))
        #expect(letters(fixture).count == 1)
    }
}
