// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import PushModel
internal import Rdkafka
internal import RecordFormats
internal import Testing

@testable internal import KafkaLog
@testable internal import Pipeline
@testable internal import Worker

@Suite struct `The planner's reports to the operator` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }
    private let now = Now(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))
    private let breaker = TrippedBreaker(
        name: "credential home in production", cause: .credentialRefused(.invalidProviderToken),
        probeIn: .seconds(7))

    @Test func `a breaker is told once when it opens and once when it closes, with what to do`() {
        var watch = ConsumerWatch()
        watch.report([] as [TrippedBreaker], logger: logger)
        #expect(lines.taken().isEmpty)
        for _ in 0..<3 { watch.report([breaker], logger: logger) }
        #expect(
            lines.taken() == [
                "warning pushes wait [cause=APNs answers InvalidProviderToken, nextProbeSeconds=7, "
                    + "of=credential home in production, remedy=check the credential's key, key ID, "
                    + "team and environments]"
            ])
        for _ in 0..<2 { watch.report([] as [TrippedBreaker], logger: logger) }
        #expect(
            lines.taken() == ["notice pushes resume [of=credential home in production]"])
        watch.report([breaker], logger: logger)
        #expect(lines.taken().count == 1, "open again")
    }

    @Test func `a last commit that Kafka has not taken is told with its partitions and the cause`()
    {
        let partitions = (0..<12).map { RefusedCommit.Place(topic: 1, partition: $0) }
        ConsumerWatch().notCommitted(
            RefusedCommit(
                partitions: partitions, cause: RdkafkaError(.rebalanceInProgress, message: "wait")),
            topics: ["events", "orders"], logger: logger)
        let told = lines.taken()
        #expect(told.count == 1)
        #expect(told[0].hasPrefix("warning Kafka has not taken the last commit of partitions"))
        #expect(told[0].contains("count=12") && told[0].contains("partitions=orders/0, orders/1,"))
        #expect(told[0].contains("orders/9 and 2 more") && told[0].contains("wait"))
    }

    @Test func `clients of Kafka that never end are told from the third on, then each`() {
        var watch = ConsumerWatch()
        func lines(_ remains: Int, after seconds: Int) -> [String] {
            var later = now
            later.monotonic = now.monotonic + .seconds(seconds)
            watch.report(remains: remains, now: later, logger: logger)
            return self.lines.taken()
        }
        #expect(lines(2, after: 0).isEmpty && lines(2, after: 100).isEmpty)
        #expect(lines(3, after: 100).isEmpty && lines(2, after: 159).isEmpty, "they end late")
        #expect(lines(3, after: 160).isEmpty && lines(3, after: 219).isEmpty)
        #expect(
            lines(3, after: 220) == [
                "warning clients of Kafka that were given up do not end, and each keeps a thread and "
                    + "memory, as happens when topics are deleted: restart this worker when it is "
                    + "convenient [clients=3]"
            ])
        #expect(lines(3, after: 300).isEmpty && lines(4, after: 301).count == 1)
    }

    @Test func `breakers are looked at when one has opened, and while one may close`() {
        var watch = ConsumerWatch()
        var time = now.monotonic
        func mustReport(opened: Int, after wait: Duration) -> Bool {
            time = time + wait
            return watch.mustReportBreakers(opened: opened, now: time)
        }
        #expect(!mustReport(opened: 0, after: .seconds(60)))
        #expect(mustReport(opened: 1, after: .milliseconds(1)))
        watch.report([breaker], logger: logger)
        #expect(!mustReport(opened: 1, after: .milliseconds(99)), "not in every turn")
        #expect(mustReport(opened: 1, after: .milliseconds(1)), "it may have closed")
        watch.report([] as [TrippedBreaker], logger: logger)
        #expect(!mustReport(opened: 1, after: .seconds(60)))
        #expect(mustReport(opened: 2, after: .milliseconds(1)))
        #expect(!mustReport(opened: 3, after: .milliseconds(50)))
        #expect(mustReport(opened: 3, after: .milliseconds(50)), "it is not forgotten")
    }

    @Test
    func `a topic that takes no records is told at once, each minute and when it is over`() {
        var watch = ConsumerWatch()
        func at(_ seconds: Int64) -> Now {
            Now(
                monotonic: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
                wall: WallTime(milliseconds: seconds * 1000))
        }
        let letters = TroubledTopic(
            topic: .deadLetters, name: "fleet.dead-letters", records: 1234, bytes: 5_000_000,
            cause: "UNKNOWN_TOPIC_OR_PART")
        for second in 0..<60 as Range<Int64> {
            watch.report([letters], now: at(second), logger: logger)
        }
        #expect(
            lines.taken() == [
                "error Kafka accepts no records of a topic [cause=UNKNOWN_TOPIC_OR_PART, "
                    + "consequence=pushes continue, but the offsets of failed events are held, and a "
                    + "restart resends the events read after them, records=dead letters, "
                    + "remedy=create the topic (lamplighter topics create), give this user WRITE on "
                    + "it, or restore its leaders, topic=fleet.dead-letters, waiting=1234, "
                    + "waitingKiB=4883]"
            ])
        watch.report([letters], now: at(60), logger: logger)
        #expect(lines.taken().count == 1)
        for second in 61..<63 as Range<Int64> { watch.report([], now: at(second), logger: logger) }
        #expect(
            lines.taken() == [
                "notice Kafka accepts the records of a topic again [records=dead letters]"
            ])
    }

    @Test func `deferred pushes without room are told once, and once when they have room again`() {
        var watch = ConsumerWatch()
        func report(_ isPaused: Bool, at seconds: Int64) {
            let later = Now(
                monotonic: now.monotonic + .seconds(seconds), wall: now.wall + .seconds(seconds))
            watch.report(forgotten: isPaused ? 1_000_000 : 0, now: later, logger: logger)
        }
        let warning =
            "warning no room for more deferred pushes (delivery.deferredMax, "
            + "delivery.queuedBytesMax): some are left in Kafka, first those that may not be sent, "
            + "and read again later [left=1000000]"
        let notice = "notice all deferred pushes that were left in Kafka have been read again []"
        report(false, at: 0)
        #expect(lines.taken().isEmpty)
        for second in 1..<200 as Range<Int64> { report(true, at: second) }
        #expect(lines.taken() == [warning])
        for second in 200..<203 as Range<Int64> { report(false, at: second) }
        #expect(lines.taken() == [notice])
        report(true, at: 203)
        #expect(lines.taken() == [warning], "the last warning is a minute old")
    }

    @Test func `deferred pushes that lack room again and again are told once a minute`() {
        var watch = ConsumerWatch()
        func report(_ isPaused: Bool, at seconds: Int64) {
            let later = Now(
                monotonic: now.monotonic + .seconds(seconds), wall: now.wall + .seconds(seconds))
            watch.report(forgotten: isPaused ? 1 : 0, now: later, logger: logger)
        }
        for second in 0..<60 as Range<Int64> { report(second.isMultiple(of: 2), at: second) }
        #expect(lines.taken().count == 2, "the first pause and its end")
        report(true, at: 60)
        #expect(lines.taken().count == 1)
        report(false, at: 61)
        #expect(lines.taken().count == 1)
        for second in 62..<120 as Range<Int64> { report(true, at: second) }
        #expect(lines.taken().isEmpty)
        report(true, at: 120)
        #expect(lines.taken().count == 1, "it has lasted until the minute was over")
    }

    @Test
    func `what fails for good is told with its event's id and traceparent, once a minute`() {
        var watch = ConsumerWatch()
        func later(_ seconds: Int64) -> Now {
            Now(
                monotonic: now.monotonic + .seconds(seconds), wall: now.wall + .seconds(seconds))
        }
        let source = DeadLetter.Source(topic: "events", partition: 3, offset: 7)
        let push = FailureSample(
            reason: "BadDeviceToken", count: 12, status: 400, message: nil,
            app: "com.example.Home", source: source, eventID: "order-7", traceparent: "00-1-2-01",
            isUnreadable: false)
        let record = FailureSample(
            reason: "invalidJSON", count: 1, status: nil, message: "no JSON", app: nil,
            source: source, eventID: nil, traceparent: nil, isUnreadable: true)
        #expect(watch.mayReportFailures(now: now))
        watch.report(failures: [], now: now, logger: logger)
        #expect(watch.mayReportFailures(now: later(1)), "nothing was told yet")
        watch.report(failures: [push, record], now: later(1), logger: logger)
        #expect(
            lines.taken() == [
                "warning pushes have failed for good [app=com.example.Home, count=12, "
                    + "event=events/3/7, eventID=order-7, reason=BadDeviceToken, status=400, "
                    + "traceparent=00-1-2-01]",
                "warning events could not be read [cause=no JSON, count=1, event=events/3/7, "
                    + "reason=invalidJSON]",
            ])
        #expect(!watch.mayReportFailures(now: later(60)))
        #expect(watch.mayReportFailures(now: later(61)))
    }

    @Test func `the line of a refused record names the app, and no more of it`() {
        func app(_ code: UnreadableCode, _ key: String) -> String? {
            Array(key.utf8).withUnsafeBytes {
                ConsumerWatch.app(UnreadableRecord(code, "refused"), $0)
            }
        }
        let key = "production/com.example.Nobody/6F1C/Controls"
        #expect(app(.unknownApp, key) == "com.example.Nobody")
        #expect(app(.unservedEnvironment, key) == "com.example.Nobody")
        #expect(app(.invalidKey, key) == nil && app(.unknownApp, "key") == nil)
        #expect(ConsumerWatch.app(UnreadableRecord(.unknownApp, "refused"), nil) == nil)
    }

    @Test func `an app that has used up its kinds is told once, and once when some are free`() {
        var watch = ConsumerWatch()
        for rows in 1...3 {
            watch.report([(app: "com.example.Home", rows: rows)], logger: logger)
        }
        let told = lines.taken()
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("warning an app has more kinds") == true)
        #expect(
            told.first?.hasSuffix(
                "[app=com.example.Home, kindsMax=65534, rowsWithoutKind=1]") == true)
        for _ in 0..<2 { watch.report([] as [(app: String, rows: Int)], logger: logger) }
        #expect(
            lines.taken() == [
                "notice the index can distinguish new kinds of an app again [app=com.example.Home]"
            ])
    }
}
