// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `Pushes of a Live Activity` {
    private let fixture = PipelineFixture()

    private func register(_ token: [UInt8], isPushToStart: Bool = false) {
        var target = RegistrationDraft.Target(
            tokenClass: .liveActivity, token: token,
            shows: [RegistrationDraft.Show(kind: "DoorAttributes", subjects: ["door"])])
        target.hearsChanges = isPushToStart
        fixture.register("I\(token[0])", [target])
    }

    private func update(_ timestamp: Int, _ event: String = "update", open: Bool = true) {
        fixture.event(
            "door",
            #"{"payload":{"aps":{"timestamp":\#(1_795_000_000 + timestamp),"event":"\#(event)","#
                + #""content-state":{"open":\#(open)}}}}"#)
    }

    private func start(_ timestamp: Int) {
        fixture.event(
            "door",
            #"{"payload":{"aps":{"timestamp":\#(1_795_000_000 + timestamp),"event":"start","content-state":{},"#
                + #""attributes-type":"DoorAttributes","attributes":{},"alert":"x"}}}"#)
    }

    @Test func `of two updates that wait the newer timestamp is sent, whatever their order`() {
        register([1])
        update(20)
        update(10, open: false)
        let sent = fixture.deliverAll()
        #expect(sent.count == 1 && sent[0].body.contains("\"timestamp\":1795000020"))
        update(30)
        update(40, "end", open: false)
        let ended = fixture.deliverAll()
        #expect(ended.count == 1 && ended[0].body.contains("\"end\""))
        #expect(ended[0].collapseID.isEmpty && fixture.isIdle)
    }

    @Test func `starts go to push-to-start tokens, each of them, and nothing else does`() {
        register([1])
        register([2], isPushToStart: true)
        start(10)
        start(11)
        update(12)
        fixture.event("door", nil)
        let sent = fixture.deliverAll()
        #expect(sent.filter { $0.token == [2] }.count == 2)
        #expect(sent.filter { $0.token == [2] }.allSatisfy { $0.body.contains("\"start\"") })
        #expect(sent.filter { $0.token == [1] }.map(\.type) == [.liveActivity])
        #expect(sent.allSatisfy { $0.type == .liveActivity && $0.priority == 10 })
    }

    @Test func `a newer update that is deferred is not replaced by an older one`() {
        register([1])
        update(20)
        let first = fixture.take()
        // The answer makes it wait; the older one comes meanwhile.
        for push in first { fixture.answer(push, 500) }
        update(10, open: false)
        fixture.pass(.seconds(3600))
        let bodies = fixture.deliverAll().map(\.body)
        #expect(!bodies.contains { $0.contains("\"timestamp\":1795000010") })
    }
}
