// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Testing

@testable import Demo
@testable import FleetKit

@Suite struct `Chaos script` {
    private let session = Duration.milliseconds(3500)

    private func script(
        _ round: Int, seed: UInt64 = 1, seconds: Int = 28, isKafkaOurs: Bool = true
    ) -> ChaosScript {
        ChaosScript(
            seed: seed, round: round, duration: .seconds(seconds), session: session,
            isKafkaOurs: isKafkaOurs)
    }

    @Test func `a seed and a round always do the same, others do something else`() {
        #expect(script(3) == script(3))
        #expect(script(3) != script(4))
        #expect(script(3).steps != script(3, seed: 2).steps)
    }

    @Test(arguments: [1, 2, 3, 99] as [UInt64])
    func `twenty rounds meet every fault, kill in half of them, and use both transports`(
        seed: UInt64
    ) {
        let scripts = (0..<20).map { script($0, seed: seed) }
        #expect(Set(scripts.flatMap(\.faults)) == Set(ChaosFault.allCases))
        #expect(scripts.filter { $0.faults.contains(.kill) }.count >= 10)
        #expect(Set(scripts.flatMap(\.transports)) == ["nghttp2", "curl"])
        #expect(Set(scripts.map(\.holdMax)) == [.seconds(2), .seconds(10)])
        #expect(scripts.allSatisfy { $0.transports.count == ChaosScript.workers })
    }

    @Test(arguments: 0..<8)
    func `what was begun is ended, in order`(round: Int) {
        let steps = script(round).steps
        #expect(steps.map(\.at) == steps.map(\.at).sorted())
        func last(_ actions: Set<ChaosAction>) -> ChaosAction? {
            steps.map(\.action).last { actions.contains($0) }
        }
        for worker in 0..<ChaosScript.workers {
            let freeze = ChaosAction.freeze(worker: worker)
            #expect(last([freeze, .thaw(worker: worker)]) != freeze)
        }
        #expect(last([.kafka("down 1"), .kafka("up 1")]) != .kafka("down 1"))
        #expect(last([.apns("stall on"), .apns("stall off")]) != .apns("stall on"))
    }

    @Test func `a Kafka of others is left alone`() {
        for round in 0..<20 {
            let script = script(round, isKafkaOurs: false)
            #expect(script.faults.filter(\.isKafkas).isEmpty)
            for step in script.steps {
                if case .kafka(let command) = step.action { Issue.record("\(command)") }
            }
        }
    }

    @Test func `duplicates are bounded by what is read again`() {
        var script = script(0)
        script.holdMax = .seconds(2)
        script.faults = [.kill, .stall]
        script.steps = []
        // 2 + 2 + 3.5 s of the 15 s in which a thousand pushes a second were owed.
        func bound(givenUp: Int = 0) -> Int {
            DuplicateBound(
                script: script, registrationGrace: .seconds(2), session: session,
                duration: .seconds(15),
                obligations: 15_000, givenUp: givenUp,
                sharedPartitions: 32
            ).pushes
        }
        #expect(bound() == 7500)
        script.faults = [.kill, .terminate]
        #expect(bound() == 15_000)
        script.faults = [.stall]
        #expect(bound() == 0)
        #expect(bound(givenUp: 16) == 3750, "half of the partitions have moved unasked")
        script.steps = [ChaosStep(at: .zero, action: .apns("reset streams"))]
        #expect(bound() == 3000)
    }
}

@Suite struct `Chaos report` {
    private func result(lost: Int = 0, truncated: Int = 0) -> CheckReport {
        var result = CheckReport()
        (result.events, result.obligations) = (10, 60)
        (result.lost, result.truncated, result.expired) = (lost, truncated, 1)
        (result.suppressed, result.deadLettered, result.withdrawn) = (2, 3, 4)
        (result.ambiguous, result.duplicates) = (5, 6)
        return result
    }

    @Test func `the chaos report is good only without loss, truncation and failures`() {
        var report = ChaosReport(seed: 1)
        report.add(result())
        #expect(report.isGood)
        #expect(report.obligations == 60)
        var losing = report
        losing.add(result(lost: 1))
        #expect(!losing.isGood)
        var truncating = report
        truncating.add(result(truncated: 1))
        #expect(!truncating.isGood)
        var failing = report
        failing.failures = ["a worker crashed"]
        #expect(!failing.isGood)
    }

    @Test func `the chaos report adds every count of its rounds`() {
        var round = ChaosReport(seed: 1)
        round.add(result(lost: 7))
        (round.rounds, round.kills, round.terminations, round.freezes) = (1, 2, 3, 4)
        (round.faults, round.exits, round.deferredRecords, round.duplicatesMax) = (5, 6, 7, 8)
        round.failures = ["one"]
        var total = ChaosReport(seed: 1)
        total.add(round)
        #expect(total == round)
        total.add(round)
        #expect(total.lost == 14)
        #expect(total.json.contains(#""lost":14"#))
        #expect(!total.json.contains("\n"))
    }
}
