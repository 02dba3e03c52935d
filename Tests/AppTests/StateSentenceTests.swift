// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import KafkaLog
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

/// Every fact that makes a worker less than well, alone and beside each other one.
@Suite struct `Each state of a worker and its sentence` {
    /// One thing that is wrong with a worker which does well otherwise.
    struct State: Sendable, CustomTestStringConvertible {
        var sentence: String
        var severity: Problem.Severity = .error
        var phase = WorkerControl.Phase.running
        var change: @Sendable (inout WorkerStatus) -> Void

        var testDescription: String { sentence }

        var status: WorkerStatus {
            var status = WorkerStatus.well(phase)
            change(&status)
            return status
        }
    }

    private static func pool(_ change: (inout WorkerStatus.Pool) -> Void) -> WorkerStatus.Pool {
        var pool = WorkerStatus.Pool(
            credential: "home", environment: "production", endpoint: "api.push.apple.com:443")
        change(&pool)
        return pool
    }

    private static func times(_ seconds: Int64) -> LatencyHistogram {
        var times = LatencyHistogram()
        times.add(nanoseconds: seconds * 1_000_000_000, count: 100)
        return times
    }

    private static func events(_ outcome: String) -> [WorkerStatus.EventCount] {
        [.init(topic: "orders", outcome: outcome, count: 1000)]
    }

    static let states: [State] = [
        State(sentence: "The planner has not turned for 25 s.") {
            $0.stuckThreads = [.init(thread: "the planner", silence: .seconds(25))]
        },
        State(sentence: "The planner has not answered for 2 s", severity: .warning) {
            $0.isCurrent = false
        },
        State(sentence: "The worker is starting", severity: .warning, phase: .replaying) {
            ($0.isStarting, $0.isCurrent) = (true, false)
        },
        State(sentence: "Kafka has not answered for 20 s") {
            for table in $0.index.tables.indices { $0.index.tables[table].age = .seconds(20) }
        },
        State(sentence: "The index is 31 s behind lamplighter.suppressions") {
            $0.index.tables[1].age = .seconds(31)
        },
        State(sentence: "Reading registrations and suppressions has stood still", phase: .replaying)
        { $0.earlier.readAt = .seconds(90) },
        State(sentence: "The worker is not a member of its consumer group") {
            $0.hasJoinedGroup = false
        },
        State(sentence: "The consumer group has been rebalancing for 14 s") {
            $0.groupWait = .seconds(14)
        },
        State(sentence: "Kafka does not know the topic orders") { $0.missingTopics = ["orders"] },
        State(sentence: "1 partition of this worker stands before a transaction") {
            $0.openTransactions = [
                OpenTransaction(topic: "orders", partition: 3, offset: 7, lasted: .seconds(25))
            ]
        },
        State(sentence: "1 partition of this worker cannot be read") {
            $0.unavailablePartitions = 1
        },
        State(sentence: "1 partition of this worker is held: orders/3 waits at offset 7 for") {
            $0.held = [
                .init(
                    topic: "orders", partition: 3, offset: 7, schema: 9, cause: "HTTP 403",
                    held: .seconds(20))
            ]
        },
        State(sentence: "Kafka accepts no dead letters") {
            $0.troubledTopics = [
                TroubledTopic(topic: .deadLetters, name: "t", records: 1, bytes: 9, cause: nil)
            ]
        },
        State(sentence: "Pushes of credential garden in production wait: APNs answers Invalid") {
            $0.breakers = [
                TrippedBreaker(
                    name: "credential garden in production",
                    cause: .credentialRefused(.invalidProviderToken), probeIn: nil)
            ]
        },
        State(sentence: "Pushes of credential home in production wait: no connection to APNs") {
            $0.pools = [Self.pool { $0.failedConnects = 1 }]
        },
        State(sentence: "Pushes of credential home in production wait: APNs has not answered") {
            $0.pools = [Self.pool { ($0.connections, $0.silence) = (1, .seconds(3)) }]
        },
        State(sentence: "3 records of orders: a condition met a text", severity: .warning) {
            $0.recordNotes = [
                .init(topic: "orders", message: "a condition met a text", count: 3)
            ]
        },
        State(sentence: "All 40 events of orders since the start were left out", severity: .warning)
        {
            $0.absences = [.init(topic: "orders", field: "/total", count: 40)]
            $0.events = [.init(topic: "orders", outcome: "filtered", count: 40)]
            $0.earlier.events = $0.events
        },
        State(sentence: "1 of the 4 connections of credential home", severity: .warning) {
            $0.pools = [Self.pool { ($0.connections, $0.connectionsIll) = (4, 1) }]
        },
        State(sentence: "APNs has taken 5 s for half of its answers", severity: .warning) {
            $0.roundTrips = Self.times(5)
        },
        State(sentence: "40 of the last 50 answers of APNs were 429 Too", severity: .warning) {
            ($0.counters.cooledDown, $0.counters.accepted) = (40, 10)
        },
        State(sentence: "9,000 pushes may be sent at once, which takes 45 s", severity: .warning) {
            ($0.load.queued, $0.counters.handedOver) = (9_000, 2_000)
        },
        State(sentence: "A tenth of the pushes of the last 10 s came", severity: .warning) {
            $0.eventToAccepted = [(.controls, Self.times(5))]
        },
        State(sentence: "The oldest push that waits is of an event 50 s ago", severity: .warning) {
            $0.load.oldestWaiting = .seconds(50)
        },
        State(sentence: "The oldest event whose offset is not committed", severity: .warning) {
            $0.load.oldestUncommitted = .seconds(50)
        },
        State(sentence: "Events come faster than their pushes are sent", severity: .warning) {
            ($0.hasRoomForEvents, $0.partitions[0].lag) = (false, 12_000)
        },
        State(sentence: "The worker has no room for more deferred pushes", severity: .warning) {
            $0.load.forgotten = 5
        },
        State(sentence: "20 records that were there at the start", severity: .warning) {
            $0.earlier.replayed = [
                .init(topic: "r", unit: "records", reason: "unknownApp", count: 20)
            ]
        },
        State(sentence: "Records of r were set aside in the last 10 s", severity: .warning) {
            $0.setAside = [.init(topic: "r", unit: "records", reason: "notJSON", count: 5)]
        },
        State(sentence: "3 records of r are not in the partitions", severity: .warning) {
            $0.misplaced = [.sample(of: "r", 3)]
        },
        State(sentence: "4 dead letters were written", severity: .warning) {
            $0.counters.deadLettersWritten = 4
            $0.deadLetters = [LetterKind(reason: "invalidJSON", topic: "orders"): 4]
        },
        State(sentence: "1,000 of the last 1,000 events of orders had", severity: .warning) {
            $0.events = Self.events("expired")
        },
        State(sentence: "1,000 of the last 2,000 events of orders were", severity: .warning) {
            $0.earlier.events = Self.events("matched")
            $0.events = Self.events("matched") + Self.events("filtered") + Self.events("matched")
        },
        State(
            sentence: "8 of 8 events since the start named subjects that nobody", severity: .warning
        ) {
            $0.events = [.init(topic: "doors", outcome: "unmatched", count: 8)]
            $0.unmatched = [.init(topic: "doors", count: 8, sample: [])]
        },
        State(sentence: "9 of 9 events since the start named subjects that are", severity: .warning)
        {
            $0.events = [.init(topic: "doors", outcome: "passedOver", count: 9)]
            $0.passedOver = [.init(topic: "doors", count: 9, sample: [])]
        },
        State(sentence: "The group has given this worker no partitions, and", severity: .warning) {
            ($0.partitions, $0.consumedPartitions) = ([], nil)
        },
        State(sentence: "This worker's clock is 24 h ahead", severity: .warning) {
            $0.clockDoubt = ClockDoubt(deferred: 3, partitions: 1, lead: .seconds(86_400))
        },
        State(sentence: "No canary has come through to APNs for 4 min") {
            $0.canary = .sample(at: $0.at, silence: .seconds(240))
        },
        State(sentence: "3 lines of the shadow log are lost", severity: .warning) {
            $0.shadow = .init(pushes: 5, lines: 2, linesLost: 3)
        },
        State(sentence: "Outcomes of pushes are not written", severity: .warning) {
            $0.outcomes = .init(topic: "outcomes", trouble: .unanswered)
        },
        State(sentence: "The worker has started without the restrictions") {
            $0.lacksRestrictions = true
        },
        State(sentence: "An operator has restricted topic orders (pause", severity: .warning) {
            $0.restrictions = [
                .topic("orders"): Restriction(.pause, by: "anna", at: WallTime(milliseconds: 0))
            ]
        },
        State(sentence: "Event orders/3/7 is withheld: it is for 9000 tokens", severity: .warning) {
            $0.withheldEvents = [
                WithheldEvent(
                    source: .init(topic: "orders", partition: 3, offset: 7), tokens: 9000,
                    at: $0.at)
            ]
        },
    ]

    @Test(arguments: Self.states) func `a state alone gives its sentence, and all is not well`(
        state: State
    ) {
        let diagnosis = Diagnosis(state.status)
        #expect(diagnosis.problems.count == 1)
        #expect(diagnosis.problems.first?.severity == state.severity)
        let said = diagnosis.summary.replacing(Diagnosis.shadowSentence + " ", with: "")
        #expect(said.hasPrefix(state.sentence), "\(diagnosis.summary)")
        #expect(diagnosis.problems.allSatisfy { !$0.remedy.isEmpty })
    }

    /// What may be told of as a consequence alone: what makes it is told in its place.
    private static let consequences = [
        "The oldest push that waits", "9,000 pushes may be sent", "Events come faster",
        "The consumer group has been",
        "The index is", "The planner has not answered",
        // Nobody knows while Kafka does not answer.
        "The worker is not a member", "Kafka does not know the topic",
        "The group has given this worker no partitions",
        "1 partition of this worker stands before a transaction",
    ]

    @Test func `of two states both are told, the graver one first`() {
        let changed = Self.states.map(Self.changed)
        for (number, one) in Self.states.enumerated() {
            for next in (number + 1)..<Self.states.count {
                let other = Self.states[next]
                guard other.phase == one.phase else { continue }
                var status = one.status
                other.change(&status)
                let told = Diagnosis(status).problems
                let warnings = told.drop { $0.severity == .error }
                #expect(warnings.allSatisfy { $0.severity == .warning })
                // The same member of the status cannot say both.
                let isShared = !changed[number].isDisjoint(with: changed[next])
                for state in [one, other] where !isShared {
                    let isTold = told.contains { $0.summary.hasPrefix(state.sentence) }
                    let isConsequence = Self.consequences.contains { state.sentence.hasPrefix($0) }
                    #expect(
                        isTold || isConsequence,
                        "\(state.sentence) is hidden by \(told.map(\.summary))")
                }
            }
        }
    }

    // MARK: Whether everything is looked at

    private static func members(of status: WorkerStatus) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: Mirror(reflecting: status).children.map {
                // Sorted, since a set has no order.
                ($0.label ?? "", String(String(reflecting: $0.value).sorted()))
            })
    }

    private static func changed(by state: State) -> Set<String> {
        let well = members(of: .well(state.phase))
        return Set(members(of: state.status).filter { $0.value != well[$0.key] }.map(\.key))
    }

    /// Members that are figures, or are told where something else is wrong.
    private static let figures: Set<String> = [
        "at", "phase", "process", "export", "holdMax", "promptTypes", "consumedTopics",
        "producedTopics",
        // What pushes and events come to, which their outcomes above judge.
        "transports", "connectTimes", "pushes", "redelivered", "unread", "memory", "budgets",
        "subjectsOverBudget", "demand",
        // Of what is in force; a topic that waits its turn has given others room.
        "breakerPhases", "topicTurns", "schemas", "recordNoteTotals",
    ]

    /// A member that is added must be looked at, or be called a figure.
    @Test func `all is well only where every member of the status was looked at`() {
        #expect(Diagnosis(.well()).problems.isEmpty)
        #expect(Diagnosis(.well()).summary == "All is well.")
        let looked = Set(Self.states.flatMap(Self.changed))
        #expect(looked.isDisjoint(with: Self.figures))
        #expect(looked.union(Self.figures) == Set(Self.members(of: .well()).keys))
    }
}
