// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// A walk that an operator's drop could end in one call of the pipeline, as it was before the call.
struct WalkWatch {
    let walk: Int
    /// Nil for that of a kind.
    let subject: String?
    /// Of those of its events whose partition is the worker's.
    let topics: Set<Int>
    /// The topic of the event of which it is one shard, and the only one.
    let source: Int?
    let claims: [OffsetClaim]
}

/// A drop ends the walks through what it covers, and no others.
extension SimulationWorker {
    func watchWalks() -> [WalkWatch] {
        pipeline.fanOut.walks.underWay.map { walk in
            let list = pipeline.fanOut.walks.request(of: walk).subject
            var claims: [OffsetClaim] = []
            pipeline.fanOut.walks.forEachHold(of: walk) { claims.append($0) }
            let topics = claims.compactMap { pipeline.state.tracker.position(of: $0)?.topic }
            return WalkWatch(
                walk: walk,
                subject: pipeline.state.audience.isKindWide(list)
                    ? nil
                    : String(
                        decoding: pipeline.state.audience.subjectBytes(of: list), as: UTF8.self),
                topics: Set(topics.map { Int($0) }),
                source: pipeline.fanOut.walks.sourceOfShard(walk).map { Int($0.topic) },
                claims: claims)
        }
    }

    /// The pipeline has followed what the worker has read of the restrictions topic.
    /// - Parameter areNew: whether what is in force has changed by it.
    /// - Returns: how many walks have ended by it.
    func noteDroppedWalks(
        _ watch: [WalkWatch], areNew: Bool
    ) throws(SimulationFailure) -> Int {
        let left = Set(pipeline.fanOut.walks.underWay)
        let ended = watch.filter { !left.contains($0.walk) }
        for walk in watch {
            let isLeft = left.contains(walk.walk)
            try require(
                isLeft || isDropped(walk), "a walk ends without an operator's word: \(walk)")
            try require(
                !(isLeft && isDropped(walk) && areNew),
                "a walk goes on against an operator's word: \(walk)")
        }
        // What it has asked for before is still owed; which tokens these are is not followed.
        for walk in ended {
            let holds = holding(walk.claims)
            model.notTold { read in
                (walk.subject == nil || read.event.subject == walk.subject) && holds(read)
            }
        }
        return ended.count
    }

    private func isDropped(_ walk: WalkWatch) -> Bool {
        restrictions.isDropped(subject: walk.subject)
            || walk.source.map { restrictions.isDropped(topic: Self.topics[$0]) } ?? false
            || !walk.topics.isEmpty
                && walk.topics.allSatisfy { restrictions.isDropped(topic: Self.topics[$0]) }
    }
}
