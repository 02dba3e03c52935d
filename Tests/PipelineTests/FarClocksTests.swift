// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Pipeline

/// Two workers whose clocks differ by hours, with pushes that have a minimum gap. Partitions of `deferred`
/// change hands, also just after an announcement, and clocks are set meanwhile.
///
/// `SimulatedClocks` keeps within half a minute, since its model judges what has expired. Here nothing
/// lives shorter than a day, and one thing is judged: how long a token waits under one owner.
@Suite struct `Workers whose clocks are far apart` {
    private static let gap = Duration.seconds(60)
    /// What a clock may add to the gap, whatever it shows.
    private static let clockMax = Duration.seconds(60)
    /// How long the steps of the simulation are at most.
    private static let stepMax = Duration.seconds(4)

    private final class Life {
        var dice: SplitMix64
        let workers: [PipelineFixture]
        let partitions: [DeferredFixture]
        var owner = 0
        /// By token, since when it has been owed a push.
        var owedSince: [UInt8: MonotonicTime] = [:]
        /// When the partition changed hands last. Each owner believes a record for so long.
        var ownedSince = MonotonicTime(nanoseconds: .min)
        private(set) var longest = Duration.zero
        private(set) var accepted = 0
        private(set) var handovers = 0
        private(set) var farthest = Duration.zero

        init(seed: UInt64) {
            dice = SplitMix64(seed: seed)
            workers = (0..<2).map { _ in
                PipelineFixture { settings in
                    settings.holdMax = .seconds(10)
                    settings.registrationGrace = .zero
                    settings.minimumGaps[.controls] = gap
                }
            }
            partitions = workers.map { DeferredFixture($0) }
            for worker in workers {
                for number in 1...4 as ClosedRange<UInt8> {
                    worker.registerControl("I\(number)", [number], shows: ["s\(number)"])
                }
            }
            for worker in workers { worker.checksEachCall = false }
            for number in workers.indices { setClock(number) }
            partitions[owner].assign()
        }

        func chance(_ percent: UInt64) -> Bool { dice.next(below: 100) < percent }

        /// Somebody sets the clock, up to six hours ahead or behind.
        func setClock(_ number: Int) {
            let error = Duration.milliseconds(Int64(dice.next(below: 43_200_000)) - 21_600_000)
            let trueTime = workers[0].now.monotonic.nanoseconds / 1_000_000 + 1_794_995_000_000
            workers[number].now.wall = WallTime(milliseconds: trueTime) + error
            farthest = max(farthest, workers[0].now.wall - workers[1].now.wall)
        }

        /// The records that a worker has written are in the log, and its owner reads them.
        func produce(_ number: Int) {
            partitions[number].produce()
            partitions[1 - number].log = partitions[number].log
            partitions[owner].read()
        }

        func deliver(_ number: Int) {
            for push in workers[number].deliverAll() {
                accepted += 1
                owedSince[push.token[0]] = nil
            }
        }

        func step() {
            let passed = Duration.milliseconds(Int64(dice.next(below: 4000)))
            for worker in workers { worker.pass(passed) }
            let number = Int(dice.next(below: 2))
            if chance(60) {
                let token = UInt8(1 + dice.next(below: 4))
                workers[number].event("s\(token)")
                owedSince[token] = owedSince[token] ?? workers[0].now.monotonic
            }
            // The announcement is in Kafka, and its push may not be sent any more.
            if chance(2) { handOver() }
            for _ in 0..<3 {
                for number in workers.indices {
                    deliver(number)
                    produce(number)
                    workers[number].pass(.zero)
                }
            }
            if chance(1) { handOver() }
            if chance(2) { setClock(number) }
            for since in owedSince.values {
                longest = max(longest, workers[0].now.monotonic - max(since, ownedSince))
            }
        }

        private func handOver() {
            handovers += 1
            // What is acknowledged just now is not sent.
            produce(owner)
            partitions[owner].revoke()
            owner = 1 - owner
            ownedSince = workers[0].now.monotonic
            partitions[owner].assign()
        }
    }

    /// In seconds: how far the writer's clock is ahead, and for how long it wants the push to wait.
    @Test(arguments: [(0, 0), (840, 0), (840, 30), (86_400, 30), (-840, 0)])
    func `a deferred push waits no longer than its writer meant`(ahead: Int, delay: Int) {
        let pipeline = PipelineFixture { $0.registrationGrace = .zero }
        pipeline.registerControl("A", [1], shows: ["door"])
        let deferred = DeferredFixture(pipeline)
        deferred.assign()
        let written = pipeline.now.wall + .seconds(ahead)
        let expiry = (written + .seconds(86_400)).rfc3339
        deferred.write(
            DeferredFixture.Record(
                key: "production/com.example.Home.push-type.controls/01",
                value: #"{"v":1,"notBefore":"\#((written + .seconds(delay)).rfc3339)","#
                    + #""expiresAt":"\#(expiry)","class":"control","attempts":0}"#,
                writtenAt: written))
        deferred.read()
        if delay > 0 {
            pipeline.pass(.seconds(delay - 1))
            #expect(pipeline.deliverAll().isEmpty, "before its time")
        }
        pipeline.pass(.seconds(1))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `no clock makes a token wait longer than the gap and 60 s`() {
        var (accepted, handovers, farthest) = (0, 0, Duration.zero)
        for seed in 1...10 as ClosedRange<UInt64> {
            let life = Life(seed: seed)
            for _ in 0..<400 { life.step() }
            // However far the clocks are apart.
            #expect(
                life.longest <= Self.gap + Self.clockMax + Self.stepMax,
                "seed \(seed): \(life.longest)")
            accepted += life.accepted
            handovers += life.handovers
            farthest = max(farthest, life.farthest)
        }
        #expect(accepted > 400 && handovers > 60, "\(accepted), \(handovers)")
        #expect(farthest > .seconds(4 * 3600))
    }
}
