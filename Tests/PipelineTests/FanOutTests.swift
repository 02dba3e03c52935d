// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `The fan-out` {
    // MARK: At once, or in turns

    @Test(arguments: [(tokens: 4, pushes: 4, fanOuts: 0), (tokens: 5, pushes: 0, fanOuts: 1)])
    func `the fan-out visits few tokens at once, and more of them in turns`(
        tokens: Int, pushes: Int, fanOuts: Int
    ) {
        let fixture = PartsFixture { $0.immediateFanOutMax = 4 }
        fixture.registerControls(tokens, shows: "hot")
        fixture.event("hot")
        #expect(fixture.pushes == pushes && fixture.fanOuts == fanOuts)
        #expect(fixture.claims == 1 && fixture.committableOffset == 0)
    }

    @Test
    func `the fan-out lets an event go on in turns whose tokens are more than the free slots`() {
        let fixture = PartsFixture {
            $0.slots = 8
            $0.immediateFanOutMax = 4
        }
        fixture.registerControls(4, shows: "own")
        fixture.registerControls(4, shows: "hot", from: 5)
        fixture.event("own")
        fixture.event("hot")
        #expect(fixture.pushes == 4 && fixture.fanOuts == 1)
        // One slot in eight is kept for deferred pushes.
        let first = [fixture.advance(), fixture.advance()]
        #expect(first == [3, 0] && fixture.pushes == 7)
        let sent = fixture.deliverAll()
        let rest = fixture.advance()
        #expect(sent.count == 7 && rest == 1 && fixture.fanOuts == 0)
        #expect(Set(sent + fixture.deliverAll()).count == 8)
    }

    @Test func `the fan-out's fan-outs leave slots for events, and take as many as events took`() {
        let fixture = PartsFixture { $0.immediateFanOutMax = 2 }
        fixture.registerControls(100, shows: "city")
        fixture.registerControls(2, shows: "door", from: 101)
        fixture.event("city")
        // A sixteenth of the 64 slots is kept for events, and an eighth for deferred pushes.
        let made = [fixture.advance(steps: 10), fixture.advance()]
        #expect(made == [10, 42] && fixture.freeEventSlots == 4)
        fixture.event("door")
        #expect(fixture.freeEventSlots == 2 && fixture.fanOuts == 1)
        let more = [fixture.advance(), fixture.advance()]
        #expect(more == [2, 0])
    }

    // MARK: Single tokens

    @Test func `the fan-out gives a claim to the push or back, unless it must wait for a slot`() {
        let fixture = PartsFixture { $0.slots = 2 }
        for (number, subject) in ["a", "b", "c", "d"].enumerated() {
            fixture.registerControls(1, shows: subject, from: UInt8(number))
        }
        fixture.feedSuppression(of: [2], registeredAt: fixture.now.wall)
        let made = ["a", "b"].map { fixture.visit($0, claim: fixture.claimOne()) }
        #expect(made == [true, true] && fixture.pushes == 2 && fixture.claims == 2)
        let joined = fixture.visit("a", claim: fixture.claimOne())
        #expect(joined && fixture.counters.pushesCoalesced == 1)
        let suppressed = fixture.visit("c", claim: fixture.claimOne())
        #expect(suppressed && fixture.counters.suppressed == 1)
        #expect(fixture.pushes == 2 && fixture.claims == 2, "both claims have gone back")
        let claim = fixture.claimOne()
        let waits = !fixture.visit("d", claim: claim)
        #expect(waits && fixture.claims == 3, "the caller still has the claim")
        fixture.state.release([claim])
        fixture.checkInvariants()
    }

    @Test func `the fan-out sends payloads to devices, and changes to those that hear of them`() {
        let fixture = PartsFixture()
        fixture.register("A", [.control([1], shows: ["s"])])
        fixture.register("B", [.device([2], shows: ["s"])])
        fixture.register("C", [.device([3], shows: ["s"], hearsChanges: true)])
        var request = fixture.request("s")
        #expect(fixture.pushTypes(of: request) == [.controls, nil, .background])
        request.ask(for: EventPayload(body: Array("{}".utf8), type: .alert))
        #expect(fixture.pushTypes(of: request) == [nil, .alert, .alert])
        request.filter.classes = TokenClassSet(.control)
        #expect(fixture.pushTypes(of: request) == [nil, nil, nil])
    }

    // MARK: Records

    @Test(
        arguments: [
            (lives: 0, age: 0, "dead when written"), (lives: 0, age: 1, "waited"),
            (lives: 1, age: 1, "sent"),
        ] as [(Int64, Int64, String)])
    func `the fan-out tells what expired in Kafka from what was dead when it was written`(
        lives: Int64, age: Int64, fate: String
    ) {
        let fixture = PartsFixture()
        fixture.registerControls(1, shows: "door")
        let expiresAt = (fixture.now.wall + .seconds(lives)).rfc3339
        fixture.event(
            "door", #"{"v":1,"expiresAt":"\#(expiresAt)"}"#,
            writtenAt: fixture.now.wall + .seconds(-age))
        let expired = fixture.fanOut.tally.takeExpired()
        #expect(expired.beforeWritten == (fate == "dead when written" ? 1 : 0))
        #expect(expired.whileWaiting == (fate == "waited" ? 1 : 0))
        #expect(expired.waitMax == .seconds(fate == "waited" ? 1 : 0))
        #expect(fixture.pushes == (fate == "sent" ? 1 : 0))
    }

    @Test func `the fan-out notes no more keys ahead than the processor's cache keeps`() {
        let fixture = PartsFixture()
        fixture.registerControls(1, shows: "door")
        for number in 0..<100 as Range<UInt8> {
            [number].withUnsafeBytes { fixture.fanOut.prefetch(key: $0, binding: 0, fixture.state) }
        }
        // It traps where more are noted.
        fixture.event("door")
        #expect(fixture.pushes == 1)
    }

    // MARK: Shards

    private func splitting(_ adjust: (inout PipelineSettings) -> Void = { _ in }) -> PartsFixture {
        let fixture = PartsFixture { settings in
            settings.splitAbove = 2
            settings.shards = ShardTopic(binding: 0, partitions: 2)
            adjust(&settings)
        }
        fixture.registerControls(3, shows: "hot")
        return fixture
    }

    @Test func `the fan-out tries a half-open topic with the shards of one event alone`() {
        let fixture = splitting()
        fixture.outbox.shardBreaker = .halfOpen
        fixture.event("hot")
        #expect(fixture.takeRecordTopics() == [.events, .events] && fixture.pushes == 0)
        fixture.event("hot")
        #expect(fixture.takeRecordTopics() == [] && fixture.pushes == 3)
        #expect(fixture.counters.eventsSplit == 1)
    }

    @Test func `the fan-out takes back refused shards no faster than their fan-outs have room`() {
        let fixture = splitting { $0.fanOutsMax = 1 }
        fixture.event("hot")
        fixture.refuseRecords()
        for count in 1...2 {
            fixture.fanOut.fanOutRefusedShards(&fixture.state, now: fixture.now)
            fixture.checkInvariants()
            #expect(fixture.fanOuts == 1 && fixture.counters.shardsRefused == count)
            _ = fixture.advance()
            #expect(fixture.fanOuts == 0)
        }
        #expect(Set(fixture.deliverAll()) == [[1], [2], [3]] && fixture.claims == 0)
    }
}
