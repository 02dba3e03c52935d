// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Testing

/// `LAMPLIGHTER_SEEDS` says how many lives to try, `LAMPLIGHTER_SEED` replays one of them.
@Suite struct `The whole pipeline in simulation` {
    static let steps = 400
    static let seeds = 200

    @Test func `loses nothing whatever happens`() {
        if let seed = Self.variable("LAMPLIGHTER_SEED") { return Self.replay(seed) }
        var coverage = SimulationCoverage()
        let count = Self.variable("LAMPLIGHTER_SEEDS") ?? UInt64(Self.seeds)
        for seed in 1...max(1, count) {
            var simulation = Simulation(seed: seed)
            // A trap in the pipeline ends the process: the last number here is then its seed.
            print(seed == 1 ? "simulated seeds: 1" : " \(seed)", terminator: "")
            fflush(nil)
            do throws(SimulationFailure) {
                try simulation.run(steps: Self.steps)
            } catch {
                print()
                return Self.replay(seed)
            }
            coverage.add(simulation.coverage)
        }
        print("\n" + coverage.table)
        #expect(count < UInt64(Self.seeds) || coverage.gaps.isEmpty)
    }

    /// Runs one seed again, now taking notes.
    private static func replay(_ seed: UInt64) {
        var simulation = Simulation(seed: seed, isTold: true)
        do throws(SimulationFailure) {
            try simulation.run(steps: steps)
        } catch {
            print(
                simulation.story.suffix(variable("LAMPLIGHTER_STORY").map(Int.init) ?? 60).joined(
                    separator: "\n"))
            Issue.record("seed \(seed): \(error.text)")
        }
    }

    private static func variable(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }
}
