// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What was decided under the old value is done under the new one: each setting that a reload may
/// change is lowered while work of every kind is under way, and lifted again.
@Suite struct `A lowered setting` {
    private static let changes: KeyValuePairs<String, @Sendable (inout PipelineSettings) -> Void> =
        [
            "recordBytesMax": { $0.events.recordBytesMax = 1 << 10 },
            "ttl": { ($0.events.changeTTL, $0.events.payloadTTL) = (.seconds(1), .seconds(1)) },
            "splitAbove": { $0.splitAbove = 1 },
            "spread": { $0.spread = .zero },
            "spreadAbove": { $0.spreadAbove = 1 },
            "fanOutMax": { $0.fanOutMax = 1 },
            "minimumGap": { $0.minimumGaps = MinimumGaps() },
            "budget": { settings in
                for type in PushType.allTypes {
                    settings.budgets[type] = min(settings.budgets[type], 1)
                }
            },
            "no budget": { $0.budgets = PushBudgets() },
            "deferredMax": { $0.deferredMax = 1 },
            "attemptsMax": { $0.attemptsMax = 1 },
            "back-offs": { settings in
                let least = Backoff(least: .milliseconds(1), most: .milliseconds(1))
                settings.retryBackoff = least
                settings.coolDownBackoff = least
                settings.breakerBackoff = least
            },
            "priority": { settings in
                for type in PushType.builtInTypes { settings.wire[type].priority = 1 }
            },
            "eventBytesMax": { $0.deadLetterEventBytesMax = 0 },
            "repeatAfter": { $0.deadLetterRepeatAfter = .zero },
            "guard": { settings in
                settings.tokenGuard.window = 1
                settings.tokenGuard.badShareMax = 0
                settings.tokenGuard.suppressionsPerMinuteMax = 1
            },
            "restrictions": { $0.restrictions = [] },
            "all": { settings in
                for (name, change) in changes where name != "all" { change(&settings) }
            },
        ]

    @Test(arguments: changes.map(\.key), 1...2 as ClosedRange<UInt64>)
    func `a lowered setting stops nothing that is under way, and all of it ends`(
        name: String, seed: UInt64
    ) throws {
        let change = Self.changes.first { $0.key == name }!.value
        var busy = BusyPipeline(seed: seed)
        let settings = busy.fixture.pipeline.state.settings
        var lowered = settings
        change(&lowered)
        for _ in 0..<4 {
            busy.work(turns: 40)
            try busy.fixture.pipeline.adopt(lowered.live, bindings: [.standard])
            busy.fixture.checkInvariants()
            busy.work(turns: 20)
            try busy.fixture.pipeline.adopt(settings.live, bindings: [.standard])
            busy.fixture.checkInvariants()
        }
        #expect(busy.kindsMet == BusyPipeline.Kind.all, "the turns must bring work of every kind")
        try busy.fixture.pipeline.adopt(lowered.live, bindings: [.standard])
        busy.finish()
        #expect(busy.fixture.isIdle && busy.isCommitted)
    }
}

/// A pipeline that is given events of every size, and whose pushes and records fare as they may.
private struct BusyPipeline {
    struct Kind: OptionSet {
        let rawValue: Int
        static let shards = Kind(rawValue: 1), fanOuts = Kind(rawValue: 2),
            spread = Kind(rawValue: 4)
        static let resting = Kind(rawValue: 8), inFlight = Kind(rawValue: 16)
        static let rows = Kind(rawValue: 32), letters = Kind(rawValue: 64)
        static let withheld = Kind(rawValue: 128), records = Kind(rawValue: 256)
        static let all = Kind(rawValue: 511)
    }

    let fixture: PipelineFixture
    private let deferred: DeferredFixture
    private var dice: SplitMix64
    private var flights: [SentPush] = []
    private var onTheirWay: [ProducedRecord] = []
    private var last: Int64 = -1
    private(set) var kindsMet: Kind = []

    private static let subjects = ["one", "few", "some", "many", "most"]

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        fixture = PipelineFixture { settings in
            settings.seed = seed
            settings.slots = 64
            settings.fanOutsMax = 16
            settings.immediateFanOutMax = 4
            settings.splitAbove = 30
            settings.shards = ShardTopic(binding: 0, partitions: 4)
            settings.spread = .seconds(4)
            settings.spreadAbove = 15
            settings.fanOutMax = 50
            settings.holdMax = .seconds(3)
            settings.attemptsMax = 6
            settings.unacknowledgedMax = 64
            settings.deadLetterTokensMax = 3
            settings.deadLetterRepeatAfter = .seconds(30)
            settings.tokenGuard.window = 20
            settings.tokenGuard.badShareMax = 0.5
            settings.minimumGaps[.controls] = .seconds(5)
            for type in PushType.allTypes { settings.budgets[type] = 3 }
            settings.budgets.isThinning = true
            settings.retryBackoff = Backoff(least: .seconds(1), most: .seconds(8))
        }
        deferred = DeferredFixture(fixture)
        deferred.assign()
        for number in 0..<60 as Range<UInt8> {
            let subjects = Self.subjects.enumerated().filter { number < [1, 8, 20, 40, 60][$0.0] }
            fixture.register(
                "I\(number)",
                [
                    .control([number], shows: subjects.map(\.element)),
                    .device([number, 1], shows: subjects.map(\.element)),
                ])
        }
        fixture.checksEachCall = false
    }

    var isCommitted: Bool { fixture.committableOffset == last + 1 }

    mutating func work(turns: Int) {
        for _ in 0..<turns {
            read()
            send()
            produce()
            fixture.pass(.milliseconds(Int64(10 + dice.next(below: 400))))
            note()
        }
        fixture.checkInvariants()
    }

    /// Everything goes well from now on.
    mutating func finish() {
        for _ in 0..<400 where !(fixture.isIdle && isCommitted && flights.isEmpty) {
            for push in flights + fixture.take() { fixture.answer(push, 200) }
            flights = []
            produce(goesWell: true)
            fixture.pass(.seconds(2))
        }
        fixture.checkInvariants()
    }

    private mutating func read() {
        guard fixture.pipeline.hasRoomForEvents, dice.next(below: 3) > 0 else { return }
        let filler = String(repeating: "x", count: Int(dice.next(below: 1500)))
        let collapse = dice.next(below: 2) == 0 ? nil : "c"
        let value = [nil, EventValue.alert(filler, collapseID: collapse)][Int(dice.next(below: 2))]
        last = fixture.event(Self.subjects[Int(dice.next(below: 5))], value)
    }

    private mutating func send() {
        flights += fixture.take(Int(1 + dice.next(below: 32)))
        while !flights.isEmpty, dice.next(below: 8) > 0 {
            let push = flights.remove(at: Int(dice.next(below: UInt64(flights.count))))
            switch dice.next(below: 20) {
            case 0: fixture.answer(push, 410, .unregistered)
            case 1: fixture.answer(push, 400, .badDeviceToken)
            case 2: fixture.answer(push, 429, .tooManyRequests)
            case 3, 4: fixture.answer(push, 500, .internalServerError)
            case 5: fixture.end(push, .unknown)
            case 6: fixture.answer(push, 413, .payloadTooLarge)
            default: fixture.answer(push, 200)
            }
        }
    }

    /// Kafka takes, refuses or never takes what is produced, in its order.
    private mutating func produce(goesWell: Bool = false) {
        onTheirWay += fixture.takeRecords()
        while !onTheirWay.isEmpty, goesWell || dice.next(below: 6) > 0 {
            let record = onTheirWay.removeFirst()
            let fate = goesWell ? 9 : dice.next(below: 10)
            if fate == 0 || fate < 5 && record.topic == .events {
                fixture.pipeline.refused(record.ticket)
            } else if fate == 1, !record.value.isEmpty {
                fixture.pipeline.tooLarge(record.ticket)
            } else {
                if record.topic == .deferred {
                    deferred.write(
                        DeferredFixture.Record(
                            key: record.key, value: record.value.isEmpty ? nil : record.value,
                            endedOffset: record.endedOffset, partition: record.partition,
                            endedPayloadAt: record.endedPayloadAt))
                }
                fixture.pipeline.acknowledged(record.ticket)
            }
            // A refused record of a key stands behind the later ones.
            onTheirWay += fixture.takeRecords()
        }
        deferred.read()
    }

    private mutating func note() {
        let load = fixture.load
        if load.deferred > 0 { kindsMet.insert(.rows) }
        if load.resting > 0 { kindsMet.insert(.resting) }
        if !flights.isEmpty { kindsMet.insert(.inFlight) }
        if load.fanOuts > 0 { kindsMet.insert(.fanOuts) }
        if fixture.pipeline.fanOut.underWay.spreadCount > 0 { kindsMet.insert(.spread) }
        if fixture.pipeline.state.outbox.letters.targets > 0 { kindsMet.insert(.letters) }
        if !fixture.pipeline.withheldEvents.isEmpty { kindsMet.insert(.withheld) }
        if !onTheirWay.isEmpty { kindsMet.insert(.records) }
        if fixture.counters.shardsRefused > 0 { kindsMet.insert(.shards) }
    }
}
