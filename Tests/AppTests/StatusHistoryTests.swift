// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `The history of statuses` {
    private func status(at seconds: Double) -> WorkerStatus {
        var status = WorkerStatus.well()
        status.index.elapsed = .seconds(seconds)
        status.counters.events = Int(seconds * 10)
        return status
    }

    /// The ages of the moments that statuses at these times are compared with.
    private func ages(at times: [Double]) -> [Double] {
        var history = StatusHistory()
        return times.map { time in
            let earlier = history.earlier(than: status(at: time))
            #expect(earlier.counters.events == Int(earlier.elapsed / .seconds(1) * 10))
            return time - earlier.elapsed / .seconds(1)
        }
    }

    @Test func `the first status is compared with the start`() {
        #expect(ages(at: [0.25]) == [0.25])
        #expect(ages(at: [86_400]) == [86_400])
    }

    @Test func `a status is compared with what was said ten seconds before`() {
        let every = (1...100).map(Double.init)
        #expect(ages(at: every).suffix(80).allSatisfy { $0 == 10 })
        #expect(ages(at: [100, 115, 130]) == [100, 15, 15])
    }

    @Test func `a status that was asked for seldom is compared with the one just before`() {
        #expect(ages(at: [86_400, 86_401, 86_402]) == [86_400, 1, 2])
    }

    @Test func `statuses in quick succession cost no memory`() {
        let quick = (1...1000).map { Double($0) / 10 }
        let ages = ages(at: quick)
        #expect(ages.allSatisfy { $0 > 0 })
        #expect(ages.suffix(500).allSatisfy { (9.5...10.5).contains($0) })
        var history = StatusHistory()
        for time in quick { _ = history.earlier(than: status(at: time)) }
        #expect(history.count <= 23)
    }
}
