// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel

/// What a worker has in shadow mode in place of APNs and of the topics that it would write to.
struct Shadow {
    /// A partition of `deferred` in memory: what would be written to the topic is read back at once, so
    /// that pushes wait, join each other and go out as they would. It ends with the process.
    static let deferredPartition = AssignmentID(ordinal: ordinal, epoch: .max)
    /// Above those of as many partitions as a group could have in earnest; a few bytes are taken for each.
    private static let ordinal: UInt32 = 1 << 16

    /// Nil where no log is configured.
    var log: ShadowLog?
    /// How many pushes would have been sent.
    private(set) var pushes = 0
    /// How many dead letters would have been written.
    private(set) var deadLetters = 0
    /// The offset of the next record of `deferredPartition`.
    private(set) var nextOffset: Int64 = 0

    /// Pushes have come back that would have been sent.
    mutating func note(
        _ outcomes: UnsafeBufferPointer<PushOutcome>, _ pipeline: borrowing PushPipeline, now: Now
    ) {
        for outcome in outcomes where outcome.kind == .answered {
            pushes += 1
            log?.append(pipeline.description(ofHandedOver: outcome.slot), at: now.wall)
        }
    }

    mutating func count(_ topic: RecordTopic) {
        if topic == .deadLetters { deadLetters += 1 }
    }

    mutating func takeOffset() -> Int64 {
        defer { nextOffset += 1 }
        return nextOffset
    }
}
