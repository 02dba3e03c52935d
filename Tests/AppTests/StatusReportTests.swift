// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import KafkaLog
internal import PushModel
internal import Telemetry
internal import Testing

@testable internal import Configuration
@testable internal import Pipeline
@testable internal import Worker

@Suite struct `The status report` {
    /// A status in which nothing is missing.
    private static var full: WorkerStatus {
        var status = WorkerStatus.well()
        status.process = WorkerStatus.Process(
            id: "worker-1", group: "lamplighter", version: "0.1.0", commit: "0123456789ab",
            startedAt: WallTime(rfc3339: "2026-11-21T03:12:00Z")!, residentBytes: 300 << 20)
        status.index.recordsRead = 250
        status.index.tokens = 1_000_000
        status.index.tokensOf = [
            .init(
                app: "com.example.Home", environment: "production", class: "widget",
                tokens: 400_000),
            .init(
                app: "com.example.Home", environment: "production", class: "control",
                tokens: 600_000),
        ]
        status.index.snapshotAge = .seconds(60)
        status.index.tables[0].unread = 750
        status.counters.events = 1000
        status.counters.accepted = 5000
        status.earlier.counters.events = 900
        status.earlier.counters.accepted = 2500
        status.load = PipelineLoad(queued: 3, inFlight: 12, claims: 4, deferred: 1204)
        var times = LatencyHistogram()
        times.add(nanoseconds: 900_000_000)
        status.earlier.roundTrips = times
        status.earlier.eventToAccepted = [(.controls, times)]
        for _ in 0..<100 { times.add(nanoseconds: 1_000_000) }
        status.roundTrips = times
        status.eventToAccepted = [(.controls, times)]
        status.load.oldestWaiting = .milliseconds(250)
        status.load.oldestWaitingTopic = "orders"
        status.load.oldestWaitingSubject = "door-1"
        status.load.oldestUncommitted = .milliseconds(1200)
        status.demand = Self.demand
        status.pools = [
            .init(
                credential: "home", environment: "production",
                endpoint: "api.push.apple.com:443", connections: 2, streams: 13,
                streamsMax: 2000, connectError: "17.188.1.1:443: Connection refused",
                isTripped: true, probeIn: .seconds(12), silence: .milliseconds(20),
                providerTokenAge: .seconds(720))
        ]
        status.breakers = [
            TrippedBreaker(
                name: "credential home in production",
                cause: .credentialRefused(.invalidProviderToken), probeIn: .seconds(12))
        ]
        status.troubledTopics = [
            TroubledTopic(
                topic: .deadLetters, name: "lamplighter.dead-letters", records: 1, bytes: 100,
                cause: "UNKNOWN_TOPIC_OR_PART")
        ]
        status.unmatched = [
            .init(
                topic: "orders", count: 1204,
                sample: [
                    .init(subject: "dor-1", at: WallTime(rfc3339: "2026-11-21T06:11:59Z")!)
                ]), .init(topic: "doors", count: 0, sample: []),
        ]
        status.passedOver = [
            .init(
                topic: "orders", count: 7,
                sample: [
                    .init(subject: "door-1", at: WallTime(rfc3339: "2026-11-21T06:11:59Z")!)
                ]), .init(topic: "doors", count: 0, sample: []),
        ]
        status.budgets = [
            BudgetUse(type: "controls", perDay: 48, tokensOver: 0, pushesOver: 0),
            BudgetUse(type: "widgets", perDay: 60, tokensOver: 1204, pushesOver: 3000),
        ]
        status.subjectsOverBudget = [
            SubjectOverBudget(app: "com.example.Home", subject: "door-1", pushes: 2100)
        ]
        status.setAside = [
            .init(
                topic: "lamplighter.registrations", unit: "rows", reason: "unroutable",
                count: 1204)
        ]
        status.earlier.setAside = status.setAside
        status.misplaced = [.sample(of: "lamplighter.registrations", 1204)]
        status.canary = .sample(
            at: status.at, silence: .seconds(70),
            proof: .cameThrough(status: 410, after: .milliseconds(84)))
        status.pushes = [
            .init(
                app: "com.example.Home", type: "controls", outcome: "accepted", reason: "",
                count: 5000)
        ]
        var limit = Restriction(
            .limit(perSecond: 500), by: "anna", at: WallTime(rfc3339: "2026-11-21T06:00:00Z")!)
        limit.reason = "the backend is slow"
        limit.until = WallTime(rfc3339: "2026-11-21T07:00:00Z")
        status.restrictions = [.pushes(app: "com.example.Home", tokenClass: nil): limit]
        return status
    }

    private static var demand: PushDemand {
        var demand = PushDemand()
        (demand.over, demand.pushes) = (.seconds(75), 120_000)
        demand.subjects = [("door-1", 114_000), ("lock", 6000)].map { name, pushes in
            PushDemand.Subject(
                app: "com.example.Home", name: name, topic: "orders", pushes: pushes,
                audience: 1900)
        }
        demand.subjects[1].unit = "kind"
        demand.topics = [
            .init(name: "orders", pushes: 117_000), .init(name: "doors", pushes: 3000),
        ]
        demand.apps = [.init(name: "com.example.Home", pushes: 120_000)]
        return demand
    }

    // MARK: The page

    /// The leaves of a JSON value by their paths, with the type of each.
    private func leaves(of value: Any, at path: String = "") -> [String: String] {
        switch value {
        case let object as [String: Any]:
            return object.reduce(into: [:]) { leaves, member in
                let name = path == "totals" ? "<counter>" : member.key
                leaves.merge(
                    self.leaves(of: member.value, at: path.isEmpty ? name : "\(path).\(name)")
                ) { one, _ in one }
            }
        case let list as [Any]:
            return list.reduce(into: [:]) { leaves, element in
                leaves.merge(self.leaves(of: element, at: path + "[]")) { one, other in
                    one == "null" ? other : one
                }
            }
        case is NSNull: return [path: "null"]
        case is String: return [path: "string"]
        default: return [path: "number"]
        }
    }

    private func leaves(of report: StatusReport) throws -> [String: String] {
        leaves(of: try JSONSerialization.jsonObject(with: Data(report.json.utf8)))
    }

    @Test func `the page describes each member, and no other`() throws {
        var described: [String: String] = [:]
        for line in try Repository.text("docs/status.md").split(separator: "\n") {
            guard
                let row = line.wholeMatch(of: /\| `([^`]+)` \| (number|string)( or null)? \| .+ \|/)
            else { continue }
            described[String(row.1)] = "\(row.2)\(row.3 ?? "")"
        }
        var whole = Self.full
        whole.pools[0].service = "broadcasts"
        whole.shadow = .init(pushes: 5000, deadLetters: 2, lines: 5000)
        whole.outcomes = .init(topic: "outcomes", written: 9)
        let step = Rollout.Step(percent: 10, from: whole.at)
        whole.restrictions[.rollout(app: "com.example.Home")] = Restriction(
            .rollout(Rollout([step], of: TokenClassSet(.device))), by: "anna", at: whole.at)
        let full = try leaves(of: StatusReport(whole))
        var bare = Self.full
        bare.index.tables = []
        bare.index.recordsRead = 0
        bare.partitions[0].lag = nil
        (bare.roundTrips, bare.eventToAccepted) = (
            bare.earlier.roundTrips, bare.earlier.eventToAccepted
        )
        (bare.load.oldestWaiting, bare.load.oldestUncommitted) = (nil, nil)
        (bare.load.oldestWaitingTopic, bare.load.oldestWaitingSubject) = (nil, nil)
        (bare.pools[0].providerTokenAge, bare.pools[0].silence) = (nil, nil)
        (bare.pools[0].connectError, bare.pools[0].probeIn) = (nil, nil)
        bare.breakers[0].probeIn = nil
        bare.index.snapshotAge = nil
        bare.canary!.silence = nil
        bare.shadow = .init()
        (bare.canary!.latest, bare.canary!.lastProof) = (nil, nil)
        bare.restrictions = [
            .topic("orders"): Restriction(
                .pause, by: ConfiguredRestriction.by, at: WallTime(milliseconds: 0))
        ]
        let missing = try leaves(of: StatusReport(bare)).filter { $0.value == "null" }
        let types = Dictionary(
            uniqueKeysWithValues: full.map { path, type in
                (path, missing[path] == nil ? type : "\(type) or null")
            })
        #expect(types == described)
        #expect(missing.count == 28)
    }

    @Test func `what is written is read again`() throws {
        for status in [Self.full, .well(.replaying)] {
            let report = StatusReport(status)
            #expect(StatusReport(json: Array(report.json.utf8))?.json == report.json)
        }
        #expect(StatusReport(json: Array("{}".utf8)) == nil)
        let other = StatusReport(Self.full).json.replacing("\"v\":1", with: "\"v\":2")
        #expect(StatusReport(json: Array(other.utf8)) == nil)
    }

    @Test func `a report of a worker from before there was a member is read`() throws {
        let json = StatusReport(Self.full).json
        let written = try JSONSerialization.jsonObject(with: Data(json.utf8))
        var members = try #require(written as? [String: Any])
        var waiting = try #require(members["waiting"] as? [String: Any])
        (waiting["oldestWaitingTopic"], waiting["oldestWaitingSeconds"]) = (nil, nil)
        (members["waiting"], members["demand"]) = (waiting, nil)
        let text = try JSONSerialization.data(withJSONObject: members)
        let report = try #require(StatusReport(json: Array(text)))
        #expect(report.waiting.oldestWaitingTopic == nil && report.waiting.oldestWaiting == nil)
        #expect(report.demand == nil)
        #expect(report.waiting.oldestWaitingSubject == "door-1")
    }

    @Test func `rates and latencies are those of the last seconds`() {
        let report = StatusReport(Self.full)
        #expect(report.rates.over == .seconds(10))
        #expect(report.rates.eventsPerSecond == 10)
        #expect(report.rates.acceptedPerSecond == 250)
        #expect(report.latency.roundTrip.count == 100)
        #expect(report.latency.roundTrip.p99?.roundedSeconds == 0.001)
        #expect(report.latency.eventToAccepted[0].p50?.roundedSeconds == 0.001)
        #expect(report.totals["accepted"] == 5000)
        var first = Self.full
        first.earlier = WorkerStatus.Earlier()
        #expect(StatusReport(first).rates.over == .seconds(100))
        first.index.elapsed = .zero
        #expect(StatusReport(first).rates.acceptedPerSecond == 0)
    }

    // MARK: For people

    @Test func `the lines say all that an operator asks`() {
        #expect(
            StatusReport(Self.full).lines == [
                "worker worker-1, group lamplighter, 0.1.0 (0123456789ab), up 3 h, 300 MiB",
                "running: Kafka accepts no dead letters: pushes continue, but the offsets of failed "
                    + "events are held, and a restart resends the events read after them. Create "
                    + "the topic (lamplighter topics create), give this user WRITE on it, or "
                    + "restore its leaders. (And 3 other problems.)",
                "",
                "partitions   1 (orders 1), lag 7",
                "throughput   10 events/s, 250 accepted/s, over 10 s",
                "latency      controls p50 1.0 ms p99 1.0 ms, round trip p50 1.0 ms p99 1.0 ms",
                "waiting      3 queued, 12 in flight, 0 resting, 1,204 deferred, the oldest for "
                    + "250 ms",
                "offsets      4 events held, 0 records unacknowledged; the oldest uncommitted event "
                    + "was read 1.2 s ago",
                "index        1,000,000 tokens, 0 subscriptions, 0 KiB, at most 4.0 s old",
                "tokens       com.example.Home in production, control: 600,000",
                "tokens       com.example.Home in production, widget: 400,000",
                "canary       one every 60 s, the newest that came through was written 70 s ago and took "
                    + "84 ms; the latest: it was not read yet",
                "restricted   app com.example.Home: limit to 500/s, by anna at "
                    + "2026-11-21T06:00:00.000Z, until 2026-11-21T07:00:00.000Z: the backend is "
                    + "slow",
                "pool         home in production: paused, next probe in 12 s, 2 connections, 13 of "
                    + "2,000 streams, provider token 12 min old, no answer for 20 ms, "
                    + "api.push.apple.com:443: 17.188.1.1:443: Connection refused",
                "breaker      credential home in production: APNs answers InvalidProviderToken, "
                    + "next probe in 12 s",
                "             Check the credential's key, key ID, team and environments.",
                "topic        lamplighter.dead-letters: Kafka accepts no dead letters: pushes "
                    + "continue, but the offsets of failed events are held, and a restart resends "
                    + "the events read after them.",
                "             Create the topic (lamplighter topics create), give this user WRITE on "
                    + "it, or restore its leaders.",
                "unmatched    orders: 1,204 events, such as dor-1",
                "passed over  orders: 7 events, such as door-1",
                "set aside    lamplighter.registrations: 1,204 rows, unroutable",
                "misplaced    lamplighter.registrations: 1,204 records in another partition than "
                    + "the key's, such as 3/17, which belongs in 5; see docs/kafka.md",
                "budget       controls: no token was sent more than 48 today",
                "budget       widgets: 1,204 tokens sent more than 60 today, 3,000 pushes above it",
                "over budget  door-1 of com.example.Home: 2,100 pushes",
                "demand       about 120,000 pushes asked for in 75 s: orders 98 %, doors 3 %; "
                    + "com.example.Home 100 %",
                "             subject door-1 of com.example.Home: 95 %, 1,900 for each event, from "
                    + "orders",
                "             kind lock of com.example.Home: 5 %, 1,900 for each event, from orders",
                "totals       1,000 events, 5,000 accepted, 0 rejected, 0 expired, 0 suppressed, "
                    + "0 dead letters",
                "",
                "error        Kafka accepts no dead letters: pushes continue, but the offsets of "
                    + "failed events are held, and a restart resends the events read after them.",
                "             Create the topic (lamplighter topics create), give this user WRITE on "
                    + "it, or restore its leaders.",
                "error        Pushes of credential home in production wait: APNs answers "
                    + "InvalidProviderToken.",
                "             Check the credential's key, key ID, team and environments.",
                "warning      1,204 records of lamplighter.registrations are not in the partitions "
                    + "of their keys, such as 3/17, which belongs in partition 5: after a restart an "
                    + "older one may win.",
                "             Set partitioner=murmur2_random in what writes them, unless the topic "
                    + "has just got more partitions, and write them again (docs/kafka.md, "
                    + "Partitioner).",
                "warning      An operator has restricted app com.example.Home (limit to 500/s, by "
                    + "anna at 2026-11-21T06:00:00.000Z: the backend is slow).",
                "             Lift it with lamplighter resume --app com.example.Home when it is no longer "
                    + "wanted.",
            ])
    }

    @Test func `a restriction of the configuration names its key, and no command`() {
        var status = WorkerStatus.well()
        status.restrictions = [
            .pushes(app: "com.example.Home", tokenClass: nil): Restriction(
                .pause, by: ConfiguredRestriction.by, at: WallTime(rfc3339: "2026-11-21T06:00:00Z")!
            )
        ]
        let report = StatusReport(status)
        #expect(!report.json.contains("resume"))
        let row =
            "restricted   app com.example.Home: pause, by planning.restrictions (the configuration) "
            + "since 2026-11-21T06:00:00.000Z"
        #expect(report.lines.contains(row))
        let problem = report.problems.first
        #expect(
            problem?.summary == "The configuration has restricted app com.example.Home (pause).")
        #expect(
            problem?.remedy
                == "Take it out of planning.restrictions when it is no longer wanted.")
    }

    @Test func `restrictions are counted apart by who has asked for them`() {
        var status = WorkerStatus.well()
        let time = WallTime(rfc3339: "2026-11-21T06:00:00Z")!
        status.restrictions = [
            .pushes(app: "com.example.Home", tokenClass: nil):
                Restriction(.pause, by: "anna", at: time),
            .topic("orders"): Restriction(.drop, by: ConfiguredRestriction.by, at: time),
        ]
        let text = MetricsText.text(WorkerMetrics.families(of: status), as: .prometheus)
        let counted = text.split(separator: "\n")
            .filter { $0.hasPrefix("lamplighter_restrictions{") && $0.hasSuffix(" 1") }
        #expect(
            counted == [
                #"lamplighter_restrictions{action="pause",origin="command"} 1"#,
                #"lamplighter_restrictions{action="drop",origin="configuration"} 1"#,
            ])
    }

    @Test func `a single problem is told once`() {
        var status = WorkerStatus.well()
        status.unavailablePartitions = 2
        let report = StatusReport(status)
        #expect(report.problems.count == 1)
        #expect(report.lines.count { $0.contains("2 partitions of this worker") } == 1)
        status.isCurrent = false
        let both = StatusReport(status).lines
        #expect(both.count { $0.hasPrefix("error ") || $0.hasPrefix("warning ") } == 2)
    }

    @Test func `a subject cannot write to the operator's terminal`() {
        var status = Self.full
        status.unmatched[0].sample[0].subject = "dor\u{1B}[2J\nworker"
        let lines = StatusReport(status).lines + StatusReport.table([StatusReport(status)])
        for line in lines {
            #expect(!line.unicodeScalars.contains { $0.value < 0x20 }, "\(line)")
        }
        #expect(lines.contains { $0.contains("dor\\u{1b}[2J\\u{a}worker") })
    }

    /// Every member of a report, as somebody might send it: numbers that no worker has, and texts that
    /// write to a terminal. What is left out has few values, such as `v`.
    private func hostile(_ value: Any, _ name: String = "") -> Any {
        let names: Set = [
            "v", "at", "startedAt", "until", "lastSuccessAt", "severity", "membership",
        ]
        switch value {
        case let object as [String: Any]:
            return Dictionary(
                uniqueKeysWithValues: object.map { ($0.key, hostile($0.value, $0.key)) })
        case let list as [Any]: return list.flatMap { [hostile($0, name), hostile($0, name)] }
        case _ where names.contains(name): return value
        case is String: return "\u{1B}]0;a\u{7}\r\n\u{9B}2J"
        case is NSNull: return value
        default: break
        }
        if name.hasSuffix("Seconds") { return name.hasPrefix("p") ? -1e300 : 1e300 }
        if name.hasSuffix("PerSecond") { return name.hasPrefix("e") ? 1e300 : -1e300 }
        if ["partition", "belongsIn"].contains(name) { return Int32.max }
        return name == "held" ? Int.min : Int.max
    }

    /// Whatever answers at a URL may send a report.
    @Test func `a hostile report ends nothing, and writes to no terminal`() throws {
        let sent = try JSONSerialization.jsonObject(with: Data(StatusReport(Self.full).json.utf8))
        var members = try #require(hostile(sent) as? [String: Any])
        var worker = try #require(members["worker"] as? [String: Any])
        worker["startedAt"] = "0000-01-01T00:00:00.000Z"
        (members["worker"], members["at"]) = (worker, "9999-12-31T23:59:59.999Z")
        let text = try JSONSerialization.data(withJSONObject: members)
        let read = try #require(StatusReport(json: Array(text)))
        let again = try #require(StatusReport(json: Array(read.json.utf8)))
        #expect(again.json == read.json)
        let lines = read.lines + StatusReport.table([read, read])
        #expect(lines.contains { $0.contains("lag 9,223,372,036,854,775,807") })
        #expect(lines.contains { $0.contains("1,000,000,000,000,000 events/s") })
        for line in lines { #expect(line == line.printable) }
    }

    @Test func `workers none of which has a partition are told of together`() {
        var one = WorkerStatus.well()
        one.partitions = []
        let report = StatusReport(one)
        let words = "None of these workers has a partition: if there are no more, another program"
        let isTold = { (reports: [StatusReport]) in
            StatusReport.table(reports).contains { $0.hasPrefix(words) }
        }
        #expect(isTold([report, report]))
        #expect(!isTold([report]) && !isTold([report, StatusReport(.well())]))
        #expect(!isTold([report, StatusReport(.well(.replaying))]))
        var troubled = one
        troubled.missingTopics = ["orders"]
        #expect(isTold([report, StatusReport(troubled)]), "another problem hides nothing")
        for change: (inout WorkerStatus) -> Void in [
            { $0.groupWait = .seconds(2) }, { $0.groupWait = .seconds(14) },
            { $0.hasJoinedGroup = false }, { $0.consumedPartitions = nil },
            { status in
                for table in status.index.tables.indices {
                    status.index.tables[table].age = .seconds(20)
                }
            },
        ] {
            var other = one
            change(&other)
            #expect(!isTold([StatusReport(other), StatusReport(other)]))
            #expect(!isTold([report, StatusReport(other)]))
        }
    }

    @Test func `a remark on a subject stands beside that subject`() {
        var status = Self.full
        status.unmatched[0].sample = ["c", "\"b\"", "a"].map {
            .init(subject: $0, at: WallTime(milliseconds: 1))
        }
        let line = StatusReport(status).lines.first { $0.hasPrefix("unmatched") }
        #expect(line?.contains("such as a, \"b\" (the quotation marks") == true, "\(line ?? "")")
        #expect(line?.hasSuffix("a field), c") == true, "\(line ?? "")")
    }

    @Test func `several workers are a table, and then what each says`() {
        var other = WorkerStatus.well()
        (other.process.id, other.process.group) = ("worker-22", "lamplighter")
        other.partitions = []
        #expect(
            StatusReport.table([StatusReport(Self.full), StatusReport(other)]).prefix(5) == [
                "worker     phase    partitions  lag  events/s  accepted/s  p99     waiting  deferred",
                "worker-1   running  1           7    10        250         1.0 ms  15       1,204   ",
                "worker-22  running  0           –    0.0       0.0         –       0        0       ",
                "",
                "worker-1: " + StatusReport(Self.full).summary,
            ])
    }
}
