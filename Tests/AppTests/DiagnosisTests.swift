// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import KafkaLog
internal import PushModel
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

/// Each case is a worker that does well but for one thing.
@Suite struct `The diagnosis of a worker` {
    func diagnosis(
        _ phase: WorkerControl.Phase = .running, _ change: (inout WorkerStatus) -> Void = { _ in }
    ) -> Diagnosis {
        var status = WorkerStatus.well(phase)
        change(&status)
        return Diagnosis(status)
    }

    /// The one problem as `severity: summary remedy`; all of them where there are several.
    func problem(
        _ phase: WorkerControl.Phase = .running, _ change: (inout WorkerStatus) -> Void
    ) -> String {
        let diagnosis = diagnosis(phase, change)
        if diagnosis.problems.count == 1 {
            let problem = diagnosis.problems[0]
            #expect(diagnosis.summary == "\(problem.summary) \(problem.remedy)")
        }
        return diagnosis.problems.map { "\($0.severity): \($0.summary) \($0.remedy)" }
            .joined(separator: "\n")
    }

    @Test func `a worker that does well says so`() {
        #expect(diagnosis().problems.isEmpty)
        #expect(diagnosis().summary == "All is well.")
        let idle = diagnosis { $0.partitions = [] }
        #expect(
            idle.summary
                == "All is well: the group has given all 32 partitions to other members. If no other "
                + "worker runs, see who they are: kafka-consumer-groups.sh --describe --members.")
        #expect(diagnosis(.stopped).summary == "The worker has stopped.")
        #expect(
            diagnosis(.draining).summary
                == "The worker is stopping: it sends what is under way and stores its offsets.")
    }

    @Test func `reading the index is progress and no problem`() {
        let diagnosis = diagnosis(.replaying) { status in
            status.hasJoinedGroup = false
            status.index.recordsRead = 250
            status.index.tables[0].unread = 750
            status.index.tables[0].age = .seconds(90)
        }
        #expect(diagnosis.problems.isEmpty)
        #expect(
            diagnosis.summary
                == "Reading registrations and suppressions: 250 records, 25 %, about 300 s left.")
    }

    @Test func `threads that are stuck come first`() {
        let diagnosis = diagnosis { status in
            status.unavailablePartitions = 1
            status.isCurrent = false
            status.stuckThreads = [
                .init(thread: "the planner", silence: .seconds(25)),
                .init(thread: "delivery thread 0", silence: .seconds(21)),
            ]
        }
        #expect(
            diagnosis.problems.map(\.summary) == [
                "The planner has not turned for 25 s.",
                "Delivery thread 0 has not turned for 21 s.",
                "1 partition of this worker cannot be read.",
            ])
        #expect(diagnosis.summary.hasPrefix("The planner has not turned for 25 s. Restart the "))
        #expect(diagnosis.summary.hasSuffix(" (And 2 other problems.)"))
    }

    @Test func `a planner that does not answer is not taken for a stuck one`() {
        let text = problem { $0.isCurrent = false }
        #expect(text.hasPrefix("warning: The planner has not answered for 2 s, so these figures"))
    }

    @Test func `a planner that waits for Kafka's topics is not to be restarted`() {
        let text = problem(.replaying) { ($0.isCurrent, $0.isStarting) = (false, true) }
        #expect(
            text == "warning: The worker is starting: it looks up its topics in Kafka. If it stays "
                + "so, check that the brokers of kafka.bootstrap run and can be reached from here.")
    }

    // MARK: Kafka

    private static let refused = ConnectionFailure(
        lines: ["127.0.0.1:9092/bootstrap: Connect failed: Connection refused (after 0ms)"],
        refusal: nil)

    @Test func `a Kafka that is away is named with why`() {
        let text = problem { status in
            status.index.tables[0].age = .seconds(17)
            status.index.tables[1].age = .seconds(16)
            status.index.connectionFailure = Self.refused
        }
        #expect(
            text == "error: Kafka has not answered for 16 s: 127.0.0.1:9092 takes no connection "
                + "(Connection refused). Check kafka.bootstrap, and that the broker is up; the "
                + "worker goes on by itself, and loses nothing.")
        let unknown = problem { status in
            for table in status.index.tables.indices {
                status.index.tables[table].age = .seconds(600)
            }
        }
        #expect(unknown.hasPrefix("error: Kafka has not answered for 10 min. Check that the brok"))
    }

    @Test func `a replay that stands still is Kafka's`() {
        let text = problem(.replaying) { $0.earlier.readAt = .seconds(90) }
        #expect(
            text.hasPrefix(
                "error: Reading registrations and suppressions has stood still for 10 s. Check"))
        let soon = diagnosis(.replaying) { $0.earlier.readAt = .seconds(96) }
        #expect(soon.problems.isEmpty)
    }

    @Test func `an index that is behind in one topic names it`() {
        let text = problem { status in
            status.index.tables[1].age = .seconds(31)
            status.index.tables[1].unread = 1204
        }
        #expect(
            text == "error: The index is 31 s behind lamplighter.suppressions, with 1,204 records "
                + "unread, so pushes may go by old registrations. Check the leaders of that topic's "
                + "partitions, and the right to read it.")
        #expect(diagnosis { $0.index.tables[1].age = .seconds(30) }.problems.isEmpty)
    }

    @Test func `a worker outside its group reads no events`() {
        let text = problem { $0.hasJoinedGroup = false }
        #expect(text.hasPrefix("error: The worker is not a member of its consumer group, so it "))
    }

    @Test func `a worker that waits for its group does not say that all is well`() {
        let short = diagnosis { ($0.groupWait, $0.partitions) = (.seconds(2), []) }
        #expect(short.problems.isEmpty)
        #expect(
            short.summary
                == "The worker waits for the group to give out its partitions, for 2 s so "
                + "far, and reads no events meanwhile.")
        let text = problem { ($0.groupWait, $0.partitions) = (.seconds(14), []) }
        #expect(
            text.hasPrefix(
                "error: The consumer group has been rebalancing for 14 s, so the worker reads no "))
        let outside = problem { ($0.groupWait, $0.hasJoinedGroup) = (.seconds(14), false) }
        #expect(outside.hasPrefix("error: The worker is not a member of its consumer group"))
    }

    @Test func `a topic that is gone is named, by a worker that has no partitions as well`() {
        let text = problem { ($0.missingTopics, $0.partitions) = (["orders"], []) }
        #expect(
            text.hasPrefix("error: Kafka does not know the topic orders, so nothing of it is read.")
        )
    }

    @Test func `a transaction that is not over is named by what it holds`() {
        let text = problem {
            $0.openTransactions = [
                OpenTransaction(topic: "orders", partition: 3, offset: 17, lasted: .seconds(25)),
                OpenTransaction(topic: "orders", partition: 1, offset: 4, lasted: .seconds(12)),
            ]
        }
        #expect(
            text.hasPrefix(
                "error: 2 partitions of this worker stand before a transaction that is not over: "
                    + "orders/3 at offset 17 for 25 s."), "\(text)")
    }

    @Test func `a broker that has answered needs no other protocol`() throws {
        let line = "[thrd:a]: 10.0.0.1:9092/1: Disconnected (after 3ms in state UP)"
        var failure = try #require(ConnectionFailure(lines: [line], refusal: nil))
        #expect(failure.remedy.contains("security.protocol"))
        failure.hasAnswered = true
        #expect(!failure.remedy.contains("security.protocol"))
    }

    // MARK: What becomes of events

    /// The status of a worker whose topic has had so many events with an outcome, of 100, before the
    /// last ten seconds, and of 100 in them.
    private func events(_ outcome: String, before: Int, now: Int) -> (inout WorkerStatus) -> Void {
        { status in
            func counts(_ found: Int, of all: Int) -> [WorkerStatus.EventCount] {
                [
                    .init(topic: "orders", outcome: outcome, count: found),
                    .init(topic: "orders", outcome: "matched", count: all - found),
                ]
            }
            status.earlier.events = counts(before, of: 100)
            status.events = counts(before + now, of: 200)
        }
    }

    @Test(arguments: ["expired", "filtered"])
    func `a share of events that are not sent is told of when it was not so before`(
        outcome: String
    ) {
        let text = problem(.running, events(outcome, before: 10, now: 60))
        #expect(text.hasPrefix("warning: 60 of the last 100 events of orders "), "\(text)")
        let asBefore = problem(.running, events(outcome, before: 40, now: 60))
        #expect(asBefore.isEmpty == (outcome == "filtered"), "no event is meant to expire")
        #expect(problem(.running, events(outcome, before: 0, now: 49)).isEmpty, "less than half")
    }

    @Test func `what is left out from the first is meant, what expires is not`() {
        func fresh(_ outcome: String) -> String {
            problem { $0.events = [.init(topic: "orders", outcome: outcome, count: 10)] }
        }
        #expect(fresh("filtered").isEmpty)
        let purge = problem { status in
            status.earlier.events = [.init(topic: "orders", outcome: "matched", count: 1000)]
            status.events = status.earlier.events
            status.events.append(.init(topic: "orders", outcome: "filtered", count: 99))
        }
        #expect(purge.isEmpty, "some records in a row")
        #expect(
            fresh("expired").hasPrefix(
                "warning: 10 of the last 10 events of orders had expired when they were read."))
    }

    @Test func `pushes that come late are told of`() {
        func accepted(_ quick: UInt64, late: UInt64) -> [(type: PushType, times: LatencyHistogram)]
        {
            var times = LatencyHistogram()
            times.add(nanoseconds: 20_000_000, count: quick)
            times.add(nanoseconds: 5_000_000_000, count: late)
            return [(.controls, times)]
        }
        let text = problem {
            ($0.earlier.eventToAccepted, $0.eventToAccepted) = (
                accepted(10_000, late: 0), accepted(10_080, late: 20)
            )
        }
        #expect(
            text.hasPrefix("warning: A tenth of the pushes of the last 10 s came "), "\(text)")
        let past = problem {
            $0.earlier.eventToAccepted = accepted(0, late: 100)
            $0.eventToAccepted = accepted(100, late: 100)
        }
        #expect(past.isEmpty)
        let kept = problem {
            $0.promptTypes = [.widgets]
            $0.eventToAccepted = accepted(0, late: 100)
        }
        #expect(kept.isEmpty, "controls are meant to wait")
        let waiting = problem { $0.load.oldestWaiting = .seconds(50) }
        #expect(waiting.hasPrefix("warning: The oldest push that waits is of an event 50 s ago."))
        #expect(problem { $0.load.oldestWaiting = .seconds(39) }.isEmpty)
    }

    @Test func `a worker that has lost its group with Kafka names Kafka`() {
        let refused = problem { status in
            status.hasJoinedGroup = false
            status.index.connectionFailure = Self.refused
        }
        #expect(
            refused == "error: The worker is not a member of its consumer group, so it reads no "
                + "events: 127.0.0.1:9092 takes no connection (Connection refused). Check "
                + "kafka.bootstrap, and that the broker is up; the worker goes on by itself, and "
                + "loses nothing.")
        let away = problem { status in
            status.hasJoinedGroup = false
            status.index.isUnanswered = true
            status.index.connectionFailure = Self.refused
        }
        #expect(
            away.hasPrefix("error: Kafka does not answer, so the worker reads no events: 127"))
        let silent = problem { status in
            (status.hasJoinedGroup, status.index.isUnanswered) = (false, true)
        }
        #expect(
            silent == "error: Kafka does not answer, so the worker reads no events. Check that the "
                + "brokers of kafka.bootstrap run and can be reached from here; the worker goes on "
                + "by itself, and loses nothing.")
    }

    @Test func `partitions that cannot be read are counted`() {
        let text = problem { $0.unavailablePartitions = 3 }
        #expect(
            text
                == "error: 3 partitions of this worker cannot be read. Bring back the brokers that "
                + "have their replicas; the log names the partitions and the cause.")
    }

    @Test(arguments: [
        (RecordTopic.deadLetters, "error: Kafka accepts no dead letters: pushes continue, but"),
        (.suppressions, "error: Kafka accepts no suppressions: pushes continue, but"),
        (.deferred, "error: Kafka accepts no deferred pushes: waiting pushes hold their offsets"),
        (.events, "warning: Kafka accepts no shards: an event of many tokens is sent only by"),
    ])
    func `a topic that takes no records is named by what it holds up`(
        topic: RecordTopic, start: String
    ) {
        let text = problem {
            $0.troubledTopics = [
                TroubledTopic(
                    topic: topic, name: "t", records: 1, bytes: 9, cause: "UNKNOWN_TOPIC_OR_PART")
            ]
        }
        #expect(text.hasPrefix(start), "\(text)")
        #expect(
            text.hasSuffix(
                " Create the topic (lamplighter topics create), give this user WRITE on it, or "
                    + "restore its leaders."))
    }

    @Test(arguments: [nil, "_MSG_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"])
    func `records that no broker acknowledges point at the brokers`(cause: String?) {
        let text = problem {
            $0.troubledTopics = [
                TroubledTopic(topic: .deadLetters, name: "t", records: 1, bytes: 9, cause: cause)
            ]
        }
        #expect(
            text.hasSuffix(
                " Kafka has not acknowledged them: check that its brokers run, can be reached "
                    + "from here and lead the topic's partitions."), "\(text)")
        #expect(!text.contains("WRITE"))
    }

    // MARK: The flow

    @Test func `an offset that is held for too long is told with its age`() {
        let text = problem {
            $0.holdMax = .seconds(60)
            $0.load.oldestUncommitted = .seconds(91)
        }
        #expect(
            text.hasPrefix(
                "warning: The oldest event whose offset is not committed was read 91 s ago, so a "))
        let allowed = diagnosis {
            $0.holdMax = .seconds(60)
            $0.load.oldestUncommitted = .seconds(90)
        }
        #expect(allowed.problems.isEmpty)
    }

    @Test func `a lag that grows while there is no room asks for workers`() {
        let text = problem { status in
            status.hasRoomForEvents = false
            status.partitions[0].lag = 12_000
            status.earlier.lag = 2000
        }
        #expect(
            text == "warning: Events come faster than their pushes are sent: the lag is 12,000 "
                + "records, 10,000 more than 10 s ago. Add workers, up to one for each partition; "
                + "if the CPU is idle, raise apns.connectionsMax; drop or limit who asks for too much."
        )
        let falling = diagnosis { status in
            status.hasRoomForEvents = false
            status.partitions[0].lag = 2000
            status.earlier.lag = 12_000
        }
        #expect(falling.problems.isEmpty)
        let caused = diagnosis { status in
            status.hasRoomForEvents = false
            status.partitions[0].lag = 2000
            status.breakers = [TrippedBreaker(name: "x", cause: .silent, probeIn: nil)]
        }
        #expect(caused.problems.count == 1, "the breaker is why")
    }

    @Test func `a backlog is told by its time, with who makes it`() {
        func backlog(_ pushes: Int, sent: Int) -> String {
            problem { status in
                status.load.queued = pushes
                status.earlier.counters.handedOver = 1_000
                status.counters.handedOver = 1_000 + sent
                status.demand.pushes = 100
                status.demand.subjects = [
                    .init(
                        app: "com.example.Home", name: "door-hot", topic: "orders",
                        pushes: 92, audience: 20_000)
                ]
            }
        }
        #expect(
            backlog(20_000, sent: 16_000)
                == "warning: 20,000 pushes may be sent at once, which takes 12 s at the speed of the last "
                + "10 s; door-hot of com.example.Home asks for 92 % of all pushes, 20,000 for each event. "
                + "One large audience is sent by itself; if it stays so, add workers, raise "
                + "apns.connectionsMax if the CPU is idle, or drop or limit who asks for too much.")
        #expect(backlog(20_000, sent: 41_000).isEmpty)
        // What is slow for another reason is told with that one.
        #expect(backlog(999, sent: 10).isEmpty)
        #expect(backlog(20_000, sent: 0).isEmpty)
    }

    @Test func `an APNs that takes no more pushes to most tokens is told`() {
        func cooled(_ count: Int, accepted: Int) -> String {
            problem { status in
                (status.earlier.counters.cooledDown, status.earlier.counters.accepted) = (7, 500)
                (status.counters.cooledDown, status.counters.accepted) = (7 + count, 500 + accepted)
            }
        }
        #expect(
            cooled(12, accepted: 3).hasPrefix(
                "warning: 12 of the last 15 answers of APNs were 429 TooManyRequests: it takes no more "
                    + "pushes to these tokens for now. Send these tokens less: planning.minimumGap")
        )
        #expect(cooled(9, accepted: 0).isEmpty)
        #expect(cooled(12, accepted: 13).isEmpty)
    }

    @Test func `deferred pushes without room are told with what makes room`() {
        let text = problem { $0.load.forgotten = 1_000_000 }
        #expect(
            text == "warning: The worker has no room for more deferred pushes, so about 1,000,000 "
                + "records of the deferred topic are left in Kafka: what may not be sent at the "
                + "moment, or has the largest backlog. They are read again when they may be sent, "
                + "and may expire before. Correct what makes pushes wait, such as a credential that "
                + "is refused; resume what is paused, or drop it; else raise delivery.deferredMax "
                + "and delivery.queuedBytesMax if memory allows, or add workers.")
        let caused = diagnosis {
            $0.load.forgotten = 1
            $0.breakers = [TrippedBreaker(name: "x", cause: .silent, probeIn: nil)]
        }
        #expect(caused.problems.map(\.severity) == [.error, .warning], "the breaker is why")
    }

    @Test func `a condition whose field no record has is told, once there are ten`() {
        func told(_ count: Int, filtered: Int = 0, matched: Int = 0) -> [Problem] {
            diagnosis { status in
                status.absences = [.init(topic: "orders", field: "/total", count: count)]
                status.events = [
                    .init(topic: "orders", outcome: "filtered", count: filtered),
                    .init(topic: "orders", outcome: "matched", count: matched),
                    .init(topic: "events", outcome: "matched", count: 7),
                ]
                status.earlier.events = status.events
            }.problems
        }
        #expect(told(9, filtered: 9).isEmpty)
        #expect(told(40, filtered: 41).isEmpty && told(40, filtered: 40, matched: 1).isEmpty)
        #expect(
            told(40, filtered: 40).first?.summary
                == "All 40 events of orders since the start were left out by its binding, since none has "
                + "/total.")
    }

    // MARK: Compacted topics

    @Test func `what was set aside in the last seconds is told with why`() {
        let set: (inout WorkerStatus) -> Void = { status in
            status.setAside = [
                .init(topic: "r", unit: "records", reason: "notJSON", count: 7),
                .init(topic: "r", unit: "rows", reason: "unroutable", count: 1204),
                .init(topic: "r", unit: "rows", reason: "outOfBounds", count: 2),
                .init(topic: "s", unit: "records", reason: "notJSON", count: 5),
            ]
            status.earlier.setAside = [
                .init(topic: "r", unit: "records", reason: "notJSON", count: 7),
                .init(topic: "r", unit: "rows", reason: "unroutable", count: 4),
            ]
        }
        #expect(
            diagnosis(.running, set).problems.map(\.summary) == [
                "Records of s were set aside in the last 10 s: 5 notJSON.",
                "Rows of r were set aside in the last 10 s: 1,200 unroutable, 2 outOfBounds.",
            ])
        #expect(diagnosis(.replaying, set).problems.isEmpty)
    }

    @Test func `registrations in other partitions than those of their keys are not well`() {
        func misplaced(_ count: Int) -> String {
            problem {
                $0.misplaced = [.sample(of: "r", count)]
            }
        }
        #expect(
            misplaced(1204)
                == "warning: 1,204 records of r are not in the partitions of their keys, such as 3/17, "
                + "which belongs in partition 5: after a restart an older one may win. Set "
                + "partitioner=murmur2_random in what writes them, unless the topic has just got more "
                + "partitions, and write them again (docs/kafka.md, Partitioner).")
        #expect(misplaced(0).isEmpty)
    }

    // MARK: Events

    @Test func `dead letters of the last seconds are counted`() {
        let text = problem {
            $0.counters.deadLettersWritten = 12
            $0.earlier.counters.deadLettersWritten = 11
        }
        #expect(
            text == "warning: 1 dead letter was written in the last 10 s. See what failed and why "
                + "with lamplighter dead-letters list.")
        let old = diagnosis {
            $0.counters.deadLettersWritten = 12
            $0.earlier.counters.deadLettersWritten = 12
        }
        #expect(old.problems.isEmpty)
    }

    @Test func `dead letters are told with reason and topic of most, and its remedy`() {
        let text = problem {
            $0.counters.deadLettersWritten = 480
            $0.earlier.counters.deadLettersWritten = 11
            $0.deadLetters = [
                LetterKind(reason: "missingSubject", topic: "orders"): 20,
                LetterKind(reason: "BadDeviceToken", topic: "doors"): 460,
            ]
            $0.earlier.deadLetters = [LetterKind(reason: "missingSubject", topic: "orders"): 11]
        }
        #expect(
            text == "warning: 469 dead letters were written in the last 10 s, most of them "
                + "BadDeviceToken in doors. Compare the environment and the app of these registrations with "
                + "the build that the tokens come from; see what failed and why with lamplighter "
                + "dead-letters list.")
    }

    /// - Parameter recent: events of `orders` in the last seconds.
    private func unmatched(_ recent: (events: Int, unmatched: Int), of all: Int) -> Diagnosis {
        diagnosis { status in
            status.events = [
                .init(topic: "orders", outcome: "matched", count: all - recent.unmatched),
                .init(topic: "orders", outcome: "unmatched", count: recent.unmatched),
                .init(topic: "doors", outcome: "matched", count: 1_000_000),
                .init(topic: "doors", outcome: "unmatched", count: 5000),
            ]
            status.earlier.events = [
                .init(topic: "orders", outcome: "matched", count: all - recent.events),
                .init(topic: "doors", outcome: "matched", count: 1000),
            ]
            status.unmatched = [
                .init(topic: "doors", count: 5000, sample: []),
                .init(
                    topic: "orders", count: 1203,
                    sample: [
                        .init(subject: "old", at: WallTime(milliseconds: 0)),
                        .init(subject: "dor-1\u{1B}", at: WallTime(milliseconds: 1)),
                    ]),
            ]
        }
    }

    @Test func `events whose subjects nobody shows are told with topic and example`() {
        #expect(
            unmatched((events: 1300, unmatched: 1204), of: 9000).problems.map(\.summary) == [
                "1,204 of 1,300 events in the last 10 s named subjects that nobody shows, such as "
                    + "dor-1\\u{1b} in orders."
            ])
        #expect(
            unmatched((events: 3, unmatched: 3), of: 3).problems.map(\.summary) == [
                "3 of 3 events since the start named subjects that nobody shows, such as "
                    + "dor-1\\u{1b} in orders."
            ])
        #expect(unmatched((events: 1300, unmatched: 1169), of: 9000).problems.isEmpty)
    }

    @Test func `events that are for none of the tokens of their subjects are told apart`() {
        func passedOver(_ count: Int) -> [Problem] {
            diagnosis { status in
                status.events = [
                    .init(topic: "orders", outcome: "matched", count: 1000 - count),
                    .init(topic: "orders", outcome: "passedOver", count: count),
                ]
                status.earlier.events = []
                status.passedOver = [
                    .init(
                        topic: "orders", count: count,
                        sample: [.init(subject: "door-1", at: WallTime(milliseconds: 1))])
                ]
            }.problems
        }
        #expect(
            passedOver(950).map(\.summary) == [
                "950 of 1,000 events in the last 10 s named subjects that are shown, but by no "
                    + "token of their classes, kinds, environment or push type, such as door-1 in orders."
            ])
        #expect(passedOver(899).isEmpty)
    }

    @Test func `registrations that could not be used at the start are told all the time`() {
        let text = problem {
            $0.index.tokens = 0
            $0.setAside = [.init(topic: "r", unit: "records", reason: "unknownApp", count: 2000)]
            $0.earlier.setAside = $0.setAside
            $0.earlier.replayed = $0.setAside
        }
        #expect(
            text == "warning: 2,000 records that were there at the start could not be used: 2,000 "
                + "unknownApp in r. Nobody gets pushes by them; for unknownApp add the app to "
                + "a credential (apns.credentials), and restart the worker.")
        let few = diagnosis {
            $0.index.tokens = 5000
            $0.index.registrations = 5000
            $0.setAside = [.init(topic: "r", unit: "records", reason: "unknownApp", count: 20)]
            $0.earlier.setAside = $0.setAside
            $0.earlier.replayed = $0.setAside
        }
        #expect(few.problems.isEmpty)
    }

    @Test func `a slow APNs is told with its round trip`() {
        let text = problem {
            $0.roundTrips.add(nanoseconds: 5_000_000_000, count: 20)
            $0.roundTrips.add(nanoseconds: 20_000_000, count: 1000)
            $0.earlier.roundTrips.add(nanoseconds: 20_000_000, count: 1000)
        }
        #expect(text.hasPrefix("warning: APNs has taken 5 s for half of its answers in the last"))
        let well = diagnosis {
            $0.roundTrips.add(nanoseconds: 5_000_000_000, count: 20)
            $0.roundTrips.add(nanoseconds: 20_000_000, count: 1000)
        }
        #expect(well.problems.isEmpty)
    }

    @Test func `a Kafka that takes no connection is told before its group is lost`() {
        for age in [6, 8] {
            let diagnosis = diagnosis { status in
                status.index.connectionFailure = Self.refused
                for table in status.index.tables.indices {
                    status.index.tables[table].age = .seconds(age)
                }
            }
            #expect(diagnosis.problems.isEmpty == (age == 6))
        }
    }

    @Test func `errors come before warnings`() {
        let diagnosis = diagnosis {
            $0.isCurrent = false
            $0.unavailablePartitions = 1
        }
        #expect(diagnosis.problems.map(\.severity) == [.error, .warning])
    }
}
