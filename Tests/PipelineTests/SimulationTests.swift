// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import PushModel
internal import RecordFormats
internal import Testing

/// `LAMPLIGHTER_SEEDS` says how many lives to try, `LAMPLIGHTER_SEED` replays one of them and
/// `LAMPLIGHTER_STORY` says how many lines of its story are printed.
@Suite struct `The whole pipeline in simulation` {
    static let steps = 500
    static let seeds = 200
    /// From so many lives on each pair of fault and station must have been met a hundred times.
    static let manySeeds = 10_000
    /// So many failing lives are told before the run ends.
    static let failuresMax = 8

    @Test func `loses nothing whatever happens`() {
        if let seed = Self.variable("LAMPLIGHTER_SEED") { return Self.replay(seed) }
        let count = max(1, Self.variable("LAMPLIGHTER_SEEDS") ?? UInt64(Self.seeds))
        let clock = ContinuousClock()
        let start = clock.now
        var coverage = SimulationCoverage()
        var failures = 0
        for seed in 1...count where failures < Self.failuresMax {
            var simulation = Simulation(seed: seed)
            // A trap in the pipeline ends the process: the last number here is then its seed.
            print(seed == 1 ? "simulated seeds: 1" : " \(seed)", terminator: "")
            fflush(nil)
            do throws(SimulationFailure) {
                try simulation.run(steps: Self.steps)
            } catch {
                print()
                failures += 1
                Self.replay(seed)
            }
            coverage.add(simulation.coverage)
        }
        guard failures == 0 else { return }
        Self.judge(coverage, count: Int(count), seconds: (clock.now - start).components.seconds)
    }

    @Test func `a seed tells the same story each time`() throws {
        var stories: [[String]] = []
        for _ in 0..<2 {
            var simulation = Simulation(seed: 4, isTold: true)
            try simulation.run(steps: Self.steps)
            stories.append(simulation.story)
        }
        #expect(Self.hash(stories[0]) == Self.hash(stories[1]))
        var other = Simulation(seed: 5, isTold: true)
        try other.run(steps: Self.steps)
        #expect(Self.hash(other.story) != Self.hash(stories[0]))
    }

    private static func hash(_ story: [String]) -> UInt64 {
        StableHash.hash64(story.joined(separator: "\n"), 1)
    }

    private static func judge(_ coverage: SimulationCoverage, count: Int, seconds: Int64) {
        print("\n" + coverage.table)
        print(
            "remembered events: \(coverage.remembered), "
                + "pushed to newcomers: \(coverage.toldToNewcomers)")
        #expect(
            count < seeds || coverage.remembered > count && coverage.toldToNewcomers > 0,
            "too few events were read again")
        print("starts with a snapshot: \(coverage.snapshotStarts)")
        #expect(count < seeds || coverage.snapshotStarts > count, "too few starts with a snapshot")
        print("thinned pushes: \(coverage.thinned)")
        #expect(count < seeds || coverage.thinned > count, "too few pushes were thinned")
        print(
            "dropped by operators: \(coverage.pushesDropped) pushes, \(coverage.eventsDropped) events"
        )
        #expect(
            count < seeds || min(coverage.pushesDropped, coverage.eventsDropped) > count / 2,
            "operators have dropped too little")
        print("repeated failures: \(coverage.repeated)")
        #expect(count < seeds || coverage.repeated > count / 50, "too few failures were repeated")
        print("joined rows: \(coverage.joined), slow records: \(coverage.slowRecords)")
        #expect(
            count < seeds || min(coverage.joined, coverage.slowRecords) > count / 4,
            "too few pushes were left to rows, or too few records were slow")
        print("patient pushes: passed \(coverage.promptFirst) times, owed \(coverage.owed) times")
        #expect(
            count < seeds || coverage.promptFirst > count && coverage.owed > 0,
            "prompt and patient pushes shared too little")
        print("payloads that were not for whoever has the phone: \(coverage.unsubscribed)")
        #expect(count < seeds || coverage.unsubscribed > count / 5, "too few were signed out")
        print("released events: \(coverage.eventsReleased)")
        #expect(count < seeds || coverage.eventsReleased > count / 5, "too few were released")
        print("turns under lowered settings: \(coverage.reloads)")
        #expect(count < seeds || coverage.reloads > count / 20, "too few reloads")
        print("spread events that went on under another owner: \(coverage.resumed)")
        #expect(count < seeds || coverage.resumed > count / 50, "too few went on")
        // A key or a topic that is refused is tried again within 90 s, so that rows of a route which may not
        // be sent leave the memory in one life of a hundred or so.
        let least = count >= manySeeds ? 50 : count >= seeds ? 1 : 0
        // What is met fifty times in ten thousand lives is common if it is met in two hundred.
        let gaps = least == 1 ? coverage.commonGaps : coverage.gaps(least: least)
        for gap in gaps { Issue.record("met too seldom: \(gap)") }
        guard gaps.isEmpty else { return }
        let (faults, stations) = (
            SimulationCoverage.faults.count, SimulationCoverage.Station.allCases.count
        )
        print(
            "\(count) lives · 0 lost · \(faults) faults × \(stations) stations, "
                + "each met at least \(least) times (late: once) · \(seconds) s")
    }

    /// Runs one seed again, now taking notes.
    private static func replay(_ seed: UInt64) {
        var simulation = Simulation(seed: seed, isTold: true)
        do throws(SimulationFailure) {
            try simulation.run(steps: steps)
        } catch {
            let lines = variable("LAMPLIGHTER_STORY").map(Int.init) ?? 60
            print(simulation.story.suffix(lines).joined(separator: "\n"))
            Issue.record("seed \(seed): \(error.text)")
        }
    }

    private static func variable(_ name: String) -> UInt64? {
        getenv(name).flatMap { UInt64(String(cString: $0)) }
    }
}
