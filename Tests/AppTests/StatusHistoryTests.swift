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

    /// The diagnosis at a moment when the history is given a status every five seconds.
    ///
    /// - Parameter asked: further times before, at which somebody asks.
    private func diagnosis(
        at seconds: Double, asked: [Double] = [], _ status: (Double) -> WorkerStatus
    ) -> Diagnosis {
        var history = StatusHistory()
        let samples = stride(from: 0, to: seconds, by: StatusHistory.interval / .seconds(1))
        for time in (Array(samples) + asked).sorted() { _ = history.earlier(than: status(time)) }
        var now = status(seconds)
        now.earlier = history.earlier(than: now)
        return Diagnosis(now)
    }

    /// When somebody may have asked before.
    private static let questions: [[Double]] = [
        [], [599], [598, 599], [480, 599.5], Array(stride(from: 590, to: 600, by: 1)),
    ]

    @Test(arguments: questions)
    func `a replay that has stood still is told, whoever asked before`(asked: [Double]) {
        let diagnosis = diagnosis(at: 600, asked: asked) { seconds in
            var status = WorkerStatus.well(.replaying)
            status.index.elapsed = .seconds(seconds)
            status.index.recordsRead = UInt64(min(seconds, 60) * 10)
            return status
        }
        #expect(
            diagnosis.problems.map(\.summary) == [
                "Reading registrations and suppressions has stood still for 9 min."
            ])
    }

    @Test(arguments: questions)
    func `a dead letter every five seconds is told, whoever asked before`(asked: [Double]) {
        for tenths in 0..<50 {
            let diagnosis = diagnosis(at: 600 + Double(tenths) / 10, asked: asked) { seconds in
                var status = status(at: seconds)
                status.counters.deadLettersWritten = Int(seconds / 5)
                return status
            }
            #expect(diagnosis.problems.count == 1, "\(tenths)")
        }
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
