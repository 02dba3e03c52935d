// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Channels` {
    private let fixture = PipelineFixture { settings in
        settings.tokenGuard.window = 10
        settings.tokenGuard.badShareMax = 0.1
    }
    private let channel = Array("tst-srch-chnl".utf8)
    /// The pool of broadcasts: the fixture's credential has the same environments twice.
    private let broadcasts: UInt16

    init() {
        let pools = fixture.pipeline.routing.pools
        broadcasts = UInt16(
            pools.firstIndex { $0.isForBroadcasts && $0.environment == .production }!)
    }

    private func register(_ tokenClass: TokenClass, _ token: [UInt8], isPushToStart: Bool = false) {
        var target = RegistrationDraft.Target(
            tokenClass: tokenClass, token: token,
            shows: [RegistrationDraft.Show(kind: nil, subjects: ["match-9"])])
        target.hearsChanges = isPushToStart
        fixture.register("I\(token[0])", [target])
    }

    private func activity(_ event: String, _ timestamp: Int, more: String = "", filler: Int = 0) {
        let text = String(repeating: "x", count: filler)
        fixture.event(
            "match-9",
            #"{"payload":{"aps":{"timestamp":\#(1_795_000_000 + timestamp),"event":"\#(event)","#
                + #""content-state":{"text":"\#(text)"}\#(more)}}}"#)
    }

    @Test func `a Live Activity's event is one broadcast, beside a push to each token`() {
        register(.channel, channel)
        for token in 1...3 as ClosedRange<UInt8> { register(.liveActivity, [token]) }
        register(.control, [9])
        activity("update", 10)
        let sent = fixture.deliverAll(pool: broadcasts)
        #expect(sent.map(\.token) == [channel])
        #expect(sent.map(\.type) == [.liveActivity] && sent.map(\.expiration) == [0])
        #expect(sent[0].body.contains(#""timestamp":1795000010"#))
        let route = fixture.pipeline.routing[sent[0].route]
        #expect(route.apnsTopic == "com.example.Home.push-type.liveactivity.channel")
        let others = fixture.deliverAll()
        #expect(Set(others.map(\.token)) == [[1], [2], [3]])
        #expect(fixture.isIdle)
    }

    @Test func `of two updates that wait the newer timestamp is broadcast`() {
        register(.channel, channel)
        activity("update", 20)
        activity("update", 10)
        let sent = fixture.deliverAll(pool: broadcasts)
        #expect(sent.count == 1 && sent[0].body.contains(#""timestamp":1795000020"#))
    }

    @Test func `neither a start nor a plain event nor another push reaches a channel`() {
        register(.channel, channel)
        register(.liveActivity, [2], isPushToStart: true)
        activity("start", 10, more: #","attributes-type":"A","attributes":{},"alert":"x""#)
        fixture.event("match-9", nil)
        fixture.event("match-9", #"{"payload":{"aps":{"alert":"x"}}}"#)
        #expect(fixture.deliverAll(pool: broadcasts).isEmpty)
        #expect(fixture.deliverAll().map(\.token) == [[2]])
    }

    @Test func `classes can name channels alone, or leave them out`() {
        register(.channel, channel)
        register(.liveActivity, [1])
        let aps = #""payload":{"aps":{"timestamp":1795000001,"event":"update","content-state":{}}}"#
        fixture.event("match-9", #"{"classes":["channel"],\#(aps)}"#)
        #expect(fixture.deliverAll(pool: broadcasts).count == 1 && fixture.deliverAll().isEmpty)
        fixture.event("match-9", #"{"classes":["liveActivity"],\#(aps)}"#)
        #expect(fixture.deliverAll(pool: broadcasts).isEmpty && fixture.deliverAll().count == 1)
    }

    @Test(arguments: [APNSReason.channelNotRegistered, .badChannelId])
    func `a channel that APNs does not know is suppressed while its route is healthy`(
        reason: APNSReason
    ) {
        register(.channel, channel)
        for timestamp in 1..<10 {
            activity("update", timestamp)
            #expect(fixture.deliverAll(pool: broadcasts).count == 1)
        }
        activity("update", 10)
        fixture.answer(fixture.take(pool: broadcasts)[0], 400, reason)
        fixture.pass(.seconds(1))
        let records = fixture.takeRecords()
        #expect(records.map(\.topic) == [.suppressions, .deadLetters])
        #expect(
            records[0].key
                == "production/com.example.Home.push-type.liveactivity.channel/"
                + "7473742d737263682d63686e6c")
        #expect(records[0].value.contains(#""reason":"\#(reason.name)""#))
        fixture.acknowledge(records)
        activity("update", 11)
        #expect(fixture.deliverAll(pool: broadcasts).isEmpty)
        fixture.pass(.seconds(3))
        register(.channel, channel)
        activity("update", 12)
        #expect(fixture.deliverAll(pool: broadcasts).count == 1)
    }

    @Test func `a deploy to the wrong environment suppresses no channel`() throws {
        let channels = (1...3).map { Array("channel-\($0)".utf8) }
        for (number, channel) in channels.enumerated() {
            fixture.register(
                "C\(number)",
                [
                    RegistrationDraft.Target(
                        tokenClass: .channel, token: channel,
                        shows: [RegistrationDraft.Show(kind: nil, subjects: ["match-9"])])
                ])
        }
        for timestamp in 1..<30 {
            activity("update", timestamp)
            let sent = fixture.take(pool: broadcasts)
            #expect(sent.count == 3, "a channel is suppressed")
            for push in sent { fixture.answer(push, 400, .channelNotRegistered) }
            fixture.pass(.seconds(1))
            let records = fixture.takeRecords()
            #expect(records.allSatisfy { $0.topic == .deadLetters })
            fixture.acknowledge(records)
        }
    }

    @Test func `a refused feature stops the app's channels and no device`() {
        register(.channel, channel)
        register(.liveActivity, [1])
        activity("update", 1)
        fixture.answer(fixture.take(pool: broadcasts)[0], 400, .featureNotEnabled)
        #expect(fixture.take(pool: broadcasts).isEmpty)
        #expect(fixture.deliverAll().map(\.token) == [[1]])
    }

    @Test func `a deferred broadcast is sent later`() {
        register(.channel, channel)
        activity("update", 1)
        for push in fixture.take(pool: broadcasts) { fixture.answer(push, 500) }
        fixture.pass(.seconds(3600))
        #expect(fixture.deliverAll(pool: broadcasts).count <= 1)
    }

    @Test func `the pool of broadcasts is reported from its first push on`() {
        let pool = PoolID(rawValue: broadcasts)
        register(.liveActivity, [1])
        activity("update", 1)
        #expect(fixture.deliverAll(pool: broadcasts).isEmpty && !fixture.pipeline.isInUse(pool))
        #expect(!fixture.pipeline.breakerPhases.contains { $0.of == .pool(pool) })
        register(.channel, channel)
        activity("update", 2)
        #expect(fixture.deliverAll(pool: broadcasts).count == 1 && fixture.pipeline.isInUse(pool))
        #expect(fixture.pipeline.breakerPhases.contains { $0.of == .pool(pool) })
    }
}
