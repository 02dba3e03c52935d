// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What was set aside of the compacted topics.
@Suite struct `The tally of what is set aside` {
    private let fixture = PipelineFixture()

    private func count(_ part: SetAsideTally.Part) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: fixture.pipeline.setAside[part].map { ($0, $1) })
    }

    private func register(_ key: String, _ value: String) {
        Array(key.utf8).withUnsafeBytes { key in
            Array(value.utf8).withUnsafeBytes { value in
                _ = fixture.pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: value, timestamp: fixture.now.wall, partition: 0, offset: 0
                    ), now: fixture.now)
            }
        }
    }

    @Test func `a registration that cannot be used is counted by its reason`() {
        for number in 0..<30 {
            register("production/com.example.Other/I\(number)/H", #"{"v":1,"targets":[]}"#)
        }
        register("production/com.example.Home/A/H", "{")
        register("production", #"{"v":1,"targets":[]}"#)
        #expect(
            count(.registrations) == ["unknownApp": 30, "invalidJSON": 1, "invalidKey": 1])
        #expect(fixture.counters.registrationsUnreadable == 32)
        #expect(fixture.counters.registrationsRead == 0)
    }

    @Test func `targets of a later release are counted, and the others are in use`() {
        let known = #"{"class":"control","token":"01","shows":[{"subjects":["door"]}]}"#
        register(
            "production/com.example.Home/A/H",
            #"{"v":1,"targets":[{"class":"hologram","token":"02"},\#(known)]}"#)
        #expect(count(.registrationRows) == ["unknownTarget": 1])
        #expect(fixture.counters.registrationRowsSetAside == 1)
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `unreadable suppressions and deferred pushes are counted by their reason`() {
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        _ = deferred.refusal(of: DeferredFixture.Record(key: "nowhere", value: "{"))
        _ = Array("nowhere".utf8).withUnsafeBytes { key in
            fixture.pipeline.suppressionRecord(
                key: key, value: key, timestamp: fixture.now.wall)
        }
        #expect(count(.deferred) == ["invalidKey": 1] && count(.suppressions) == ["invalidKey": 1])
        #expect(fixture.counters.deferredUnreadable == 1)
        #expect(fixture.counters.suppressionsUnreadable == 1)
    }

    @Test func `what a check has left in a topic is passed over`() {
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        let key = ProbeRecord.key
        #expect(deferred.refusal(of: DeferredFixture.Record(key: key, value: nil)) == nil)
        Array(key.utf8).withUnsafeBytes { key in
            #expect(
                fixture.pipeline.suppressionRecord(
                    key: key, value: nil, timestamp: fixture.now.wall) == nil)
            #expect(fixture.pipeline.restrictionRecord(key: key, value: nil) == nil)
            #expect(
                fixture.pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: nil, timestamp: fixture.now.wall, partition: 0, offset: 0),
                    now: fixture.now) == nil)
            fixture.event(ProbeRecord.key, nil)
            // With a value it is nothing of ours.
            #expect(fixture.pipeline.restrictionRecord(key: key, value: key)?.code == "invalidKey")
        }
        for part in [SetAsideTally.Part.registrations, .suppressions, .deferred] {
            #expect(count(part).isEmpty)
        }
        #expect(count(.restrictions) == ["invalidKey": 1])
        #expect(fixture.pipeline.deadLetters.isEmpty)
    }

    @Test func `dead letters are counted by their topic and reason, or as other`() {
        fixture.registerControl("A", [1], shows: ["door"])
        for reason in [APNSReason.badMessageId, .unknown, .badMessageId] {
            fixture.event("door")
            let push = fixture.take()[0]
            if reason == .unknown { fixture.slab.keepReason("Bewitched", of: push.slot) }
            fixture.answer(push, 400, reason)
            fixture.pass(.seconds(1))
        }
        fixture.event("door", "{")
        let written = fixture.pipeline.deadLetters.map { "\($0.reason) \($1)" }.sorted()
        #expect(written == ["BadMessageId 2", "invalidJSON 1", "other 1"])
        #expect(Set(fixture.pipeline.deadLetters.keys.map(\.topic)).count == 1)
        #expect(fixture.counters.deadLettersWritten == 4)
    }
}
