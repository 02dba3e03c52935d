// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What the pipeline holds at this moment; as JSON, the part of it that `/status` has under `waiting`.
package struct PipelineLoad: Codable, Sendable, Equatable {
    package var queued = 0
    package var inFlight = 0
    package var resting = 0
    package var fanOuts = 0
    package var claims = 0
    /// Pushes that wait in the `deferred` partitions that are ours.
    package var deferred = 0
    /// About how many records of these partitions are left in Kafka, since there was no room for
    /// their pushes.
    package var forgotten = 0
    /// Tokens of these partitions that were sent a push and are owed none: their rows keep the time
    /// until the minimum gap is over.
    package var tokensWithinGap = 0
    /// Deferred pushes that have expired by this worker's clock alone: they are neither sent nor
    /// ended.
    package var heldBack = 0
    package var unacknowledged = 0
    /// How many of the unacknowledged records Kafka has refused, so that they are produced again.
    package var refused = 0
    package var payloadBytes = 0

    // What has waited longest, which `PushPipeline.load(now:)` alone tells.
    /// How long ago the oldest event was written of which a push waits in memory to be sent; nil if
    /// none waits, or its time is not known. It may be out of date by a second.
    @Seconds package var oldestWaiting: Duration? = nil
    /// The topic of that event; nil also if it is not known.
    @Nullable package var oldestWaitingTopic: String? = nil
    package var oldestWaitingApp: String?
    /// What it is about; nil also if nobody shows it any more.
    @Nullable package var oldestWaitingSubject: String? = nil
    /// How long ago the oldest record was read whose offset cannot be committed yet; nil if there is
    /// none.
    @Seconds package var oldestUncommitted: Duration? = nil

    package static let nothing = PipelineLoad()

    private enum CodingKeys: String, CodingKey {
        case queued, inFlight, resting, deferred, unacknowledged, payloadBytes
        case claims = "held"
        case oldestWaitingTopic, oldestWaitingSubject
        case oldestWaiting = "oldestWaitingSeconds"
        case oldestUncommitted = "oldestUncommittedSeconds"
    }
}
