// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

@testable internal import Pipeline

/// A fan-out that an operator's drop could end in one call of the pipeline, as it was before the call.
struct FanOutWatch {
    let index: Int
    /// Nil for that of a kind.
    let subject: String?
    /// Of those of its events whose partition is the worker's.
    let topics: Set<Int>
    /// The topic of the event of which it is one shard, and the only one.
    let source: Int?
    let claims: [OffsetClaim]
}

/// A drop ends the fan-outs of what it covers, and no others.
extension SimulationWorker {
    func watchFanOuts() -> [FanOutWatch] {
        pipeline.fanOut.underWay.active.map { fanOut in
            let list = pipeline.fanOut.underWay.request(of: fanOut).subject
            var claims: [OffsetClaim] = []
            pipeline.fanOut.underWay.forEachClaim(of: fanOut) { claims.append($0) }
            let topics = claims.compactMap { pipeline.state.tracker.position(of: $0)?.topic }
            return FanOutWatch(
                index: fanOut,
                subject: subject(of: list),
                topics: Set(topics.map { Int($0) }),
                source: pipeline.fanOut.underWay.sourceOfShard(fanOut).map { Int($0.topic) },
                claims: claims)
        }
    }

    private func subject(of list: SubjectID) -> String? {
        let name = String(
            decoding: pipeline.state.audience.subjectBytes(of: list), as: UTF8.self)
        return switch pipeline.state.audience.scope(of: list) {
        case .subject: name
        case .kindWide: nil
        case .installation: SimulatedEvent.subject(ofInstallation: name)
        }
    }

    /// The pipeline has followed what the worker has read of the restrictions topic.
    /// - Parameter areNew: whether what is in force has changed by it.
    /// - Returns: how many fan-outs have ended by it.
    func noteDroppedFanOuts(
        _ watch: [FanOutWatch], areNew: Bool
    ) throws(SimulationFailure) -> Int {
        let left = Set(pipeline.fanOut.underWay.active)
        let ended = watch.filter { !left.contains($0.index) }
        for fanOut in watch {
            let isLeft = left.contains(fanOut.index)
            try require(
                isLeft || isDropped(fanOut), "a fan-out ends without an operator's word: \(fanOut)")
            try require(
                !(isLeft && isDropped(fanOut) && areNew),
                "a fan-out goes on against an operator's word: \(fanOut)")
        }
        // What it has asked for before is still owed; which tokens these are is not followed.
        for fanOut in ended {
            let holds = holding(fanOut.claims)
            model.notTold { read in
                (fanOut.subject == nil || read.event.subject == fanOut.subject) && holds(read)
            }
        }
        return ended.count
    }

    private func isDropped(_ fanOut: FanOutWatch) -> Bool {
        restrictions.isDropped(subject: fanOut.subject)
            || fanOut.source.map { restrictions.isDropped(topic: Self.topics[$0]) } ?? false
            || !fanOut.topics.isEmpty
                && fanOut.topics.allSatisfy { restrictions.isDropped(topic: Self.topics[$0]) }
    }
}
