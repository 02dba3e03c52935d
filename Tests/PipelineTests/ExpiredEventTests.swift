// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Whose fault it is that an event is worth nothing any more.
@Suite struct `An event that has expired when it is read` {
    private func read(
        _ fixture: PipelineFixture, _ value: String, writtenAt: WallTime
    ) -> ExpiredEvents {
        Array("door".utf8).withUnsafeBytes { key in
            Array(value.utf8).withUnsafeBytes { value in
                let record = EventRecord(
                    binding: 0, key: key, value: value, timestamp: writtenAt)
                fixture.pipeline.eventRecord(
                    record, of: fixture.assignment, now: fixture.now
                ) { _ in nil }
            }
        }
        #expect(fixture.counters.eventsExpired == 1 && fixture.isIdle)
        #expect(fixture.counters.eventsUnmatched == 0)
        let expired = fixture.takeExpired()
        #expect(fixture.takeExpired() == ExpiredEvents())
        return expired
    }

    @Test func `an expired event may have waited too long in Kafka`() {
        let fixture = PipelineFixture()
        let expired = read(
            fixture, #"{"v":1,"ttlSeconds":60}"#, writtenAt: fixture.now.wall + .seconds(-90))
        #expect(expired.whileWaiting == 1 && expired.beforeWritten == 0)
        #expect(expired.waitMax == .seconds(90))
    }

    @Test func `an expired event may have been dead when it was written`() {
        let fixture = PipelineFixture()
        let expired = read(
            fixture, #"{"v":1,"expiresAt":"2020-01-01T00:00:00Z"}"#,
            writtenAt: fixture.now.wall + .seconds(-1))
        #expect(expired.whileWaiting == 0 && expired.beforeWritten == 1)
        #expect(expired.waitMax == .zero)
    }

    @Test func `an expired event has waited nobody knows how long where a broker keeps no times`() {
        let fixture = PipelineFixture()
        let expired = read(
            fixture, #"{"v":1,"expiresAt":"2020-01-01T00:00:00Z"}"#,
            writtenAt: WallTime(milliseconds: -1))
        #expect(expired.whileWaiting == 1 && expired.waitMax == .zero)
    }
}
