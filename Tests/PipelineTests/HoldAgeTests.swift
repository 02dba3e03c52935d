// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// The bound counts from the oldest event that a push holds, whatever has come to it since.
@Suite struct `The age of a hold` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        let later = TopicBinding(decode: .key, delay: .seconds(60))
        pipeline = PipelineFixture(bindings: [.standard, later]) { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        deferred = DeferredFixture(pipeline)
    }

    /// Another worker's deferred push to the token stands in its queue: it holds no event.
    private func queueDeferredPush(withFanOuts: Bool = true) {
        let (notBefore, expiresAt) = (pipeline.now.wall, pipeline.now.wall + .seconds(3600))
        deferred.assign()
        deferred.write(
            DeferredFixture.Record(
                key: "production/com.example.Home.push-type.controls/01",
                value: #"{"v":1,"notBefore":"\#(notBefore.rfc3339)","#
                    + #""expiresAt":"\#(expiresAt.rfc3339)","class":"control","attempts":0}"#))
        deferred.read()
        if withFanOuts { pipeline.pass(.milliseconds(100)) }
        pipeline.pipeline.advance(now: pipeline.now)
        #expect(pipeline.load.queued == 1)
    }

    @Test func `the age of a hold is counted from its first event, however many join it`() {
        pipeline.event("door")
        for _ in 0..<9 {
            pipeline.pass(.seconds(1))
            pipeline.event("door")
        }
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `the age of a hold is counted from the event that joined a deferred push`() {
        queueDeferredPush()
        pipeline.pass(.seconds(20))
        #expect(deferred.produce().deferred.isEmpty)
        let offset = pipeline.event("door")
        pipeline.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == offset + 1)
    }

    @Test func `the age of a hold is counted from the follow-up of a deferred push that returns`() {
        queueDeferredPush()
        let push = pipeline.take()[0]
        let offset = pipeline.event("door")
        pipeline.end(push, .unprocessed)
        pipeline.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == offset + 1)
    }

    @Test func `the age of a hold is counted from the follow-up of a waiting deferred push`() {
        queueDeferredPush()
        let offset = pipeline.event("door", binding: 1)
        pipeline.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == offset + 1)
    }

    @Test func `the age of a hold is counted from the event that a deferred push answers`() {
        // Its fan-out is under way, and comes to the token when the push has been handed over.
        for number in 2..<80 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["all"])
        }
        pipeline.registerControl("A", [1], shows: ["door", "all"])
        let offset = pipeline.event("all")
        queueDeferredPush(withFanOuts: false)
        let push = pipeline.take()[0]
        #expect(push.token == [1])
        pipeline.pass(.milliseconds(100))
        #expect(pipeline.deliverAll().count == 78)
        pipeline.end(push, .unprocessed)
        pipeline.pass(.seconds(9))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == offset + 1)
    }

    @Test func `the age of a hold does not send a delayed follow-up early with the push before it`()
    {
        pipeline.event("door")
        let push = pipeline.take()[0]
        pipeline.event("door", binding: 1)
        pipeline.end(push, .unprocessed)
        deferred.assign()
        for _ in 0..<59 {
            pipeline.pass(.seconds(1))
            #expect(pipeline.deliverAll().isEmpty)
            deferred.produce()
            deferred.read()
        }
        pipeline.pass(.seconds(2))
        #expect(pipeline.deliverAll().count == 1)
    }
}
