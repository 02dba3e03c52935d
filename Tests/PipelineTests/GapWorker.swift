// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A worker that reads all events, and owns the partition of `deferred` while it is assigned.
final class GapWorker {
    let pipeline: PipelineFixture
    let deferred: DeferredFixture

    init(
        gap: Duration = .seconds(60), at now: Now? = nil, log: [DeferredFixture.Record] = [],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.minimumGaps[.controls] = gap
            adjust(&settings)
        }
        if let now { pipeline.now = now }
        pipeline.registerControl("A", [1], shows: ["door"])
        deferred = DeferredFixture(pipeline)
        deferred.log = log
        deferred.assign()
    }

    /// Lets the worker do what it can: what it writes is acknowledged and read back.
    /// - Returns: what it has handed over, unanswered.
    func run() -> [SentPush] {
        var sent: [SentPush] = []
        for _ in 0..<8 {
            pipeline.pass(.zero)
            sent += pipeline.take()
            deferred.produce()
            deferred.read()
        }
        return sent
    }

    /// - Returns: how many pushes were accepted.
    func deliver() -> Int {
        let sent = run()
        for push in sent { pipeline.answer(push, 200) }
        return sent.count + (sent.isEmpty ? 0 : run().count)
    }

    /// An event comes, and its push is written to the topic and read back: the announcement is the
    /// next record.
    func deferPush(_ value: String? = nil) {
        pipeline.event("door", value)
        #expect(pipeline.take().isEmpty)
        deferred.produce()
        deferred.read()
        pipeline.pass(.zero)
    }

    /// Whether no row is left, not even one that only keeps the time.
    var isDone: Bool { pipeline.load.deferred + pipeline.load.tokensWithinGap == 0 }
    var latest: DeferredFixture.Record { deferred.log.last! }
}
