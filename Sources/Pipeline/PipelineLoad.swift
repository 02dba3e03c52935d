// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What the pipeline is holding at this moment.
package struct PipelineLoad: Sendable, Equatable {
    package var queued: Int
    package var inFlight: Int
    package var resting: Int
    package var fanOuts: Int
    package var holders: Int
    /// Rows of the `deferred` partitions that are ours.
    package var deferred: Int
    package var unacknowledged: Int
    /// Of those, the records that Kafka has refused and that are produced again.
    package var refused: Int
    package var payloadBytes: Int
}
