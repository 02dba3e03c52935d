// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Logging
internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

/// Times that do not agree are told, with what is to be looked at.
@Suite struct `A watch over the times of records` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }
    private let start = Now(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))

    private func after(_ duration: Duration) -> Now {
        Now(monotonic: start.monotonic + duration, wall: start.wall + duration)
    }

    private func look(
        _ watch: inout RecordTimeWatch, _ expired: ExpiredEvents = ExpiredEvents(),
        unread: Int64 = 0, at now: Now
    ) -> [String] {
        watch.report(expired, unread: unread, now: now, logger: logger) { "\($0)" }
        return lines.taken()
    }

    @Test func `events that expired while they waited are told at once and then once a minute`() {
        var watch = RecordTimeWatch()
        var expired = ExpiredEvents()
        expired.whileWaiting = 3
        expired.waitMax = .seconds(90_000)
        #expect(
            look(&watch, expired, unread: 7, at: start) == [
                "warning events expired before they were read [cause=this worker lags behind, "
                    + "events=3, unread=7, waitSecondsMax=90000]"
            ])
        #expect(look(&watch, expired, unread: 7, at: after(.seconds(5))).isEmpty)
        let next = look(&watch, at: after(.seconds(60)))
        #expect(next.count == 1)
        #expect(next.first?.contains("cause=nothing is left to read") == true)
        #expect(next.first?.contains("events=3") == true)
        #expect(look(&watch, at: after(.seconds(120))).isEmpty)
    }

    @Test func `events that were dead when they were written are told`() {
        var watch = RecordTimeWatch()
        var expired = ExpiredEvents()
        expired.beforeWritten = 2
        let told = look(&watch, expired, at: start)
        #expect(told.count == 1)
        #expect(told.first?.contains("had expired before they were written") == true)
        #expect(told.first?.contains("events=2") == true)
    }

    @Test func `a record from the future is told with its topic and how far`() {
        var watch = RecordTimeWatch()
        let wall = start.wall.milliseconds
        watch.sampled(wall + 4_000, of: .events(0), now: start)
        watch.sampled(-1, of: .events(0), now: start)
        #expect(look(&watch, at: start).isEmpty)
        watch.sampled(wall + 60_000, of: .table(0), now: start)
        watch.sampled(wall + 42_000, of: .events(0), now: start)
        let told = look(&watch, at: start)
        #expect(told.count == 1)
        #expect(told.first?.contains("[aheadSeconds=60, topic=table(0)]") == true)
        watch.sampled(wall + 60_000, of: .events(0), now: start)
        #expect(look(&watch, at: start).isEmpty, "not in each line")
        watch.sampled(wall + 6_000_000, of: .events(0), now: start)
        #expect(look(&watch, at: after(.seconds(600))).count == 1)
    }

    @Test func `old records are told only where nothing else is left to read for a minute`() {
        var watch = RecordTimeWatch()
        func looks(_ count: Int, age: Int64, unread: Int64) -> [String] {
            (0..<count).flatMap { _ in
                watch.sampled(start.wall.milliseconds - age, of: .events(0), now: start)
                return look(&watch, unread: unread, at: start)
            }
        }
        #expect(looks(20, age: 3_600_000, unread: 5).isEmpty, "this worker lags behind")
        #expect(looks(20, age: 20_000, unread: 0).isEmpty, "it is read soon enough")
        #expect(looks(11, age: 3_600_000, unread: 0).isEmpty)
        #expect(looks(1, age: 1_000, unread: 0).isEmpty)
        let told = looks(20, age: 3_600_000, unread: 0)
        #expect(told.count == 1)
        #expect(told.first?.contains("ageSecondsMin=3600") == true)
    }
}
