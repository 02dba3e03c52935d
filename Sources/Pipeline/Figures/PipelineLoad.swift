// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What the pipeline holds at this moment.
package struct PipelineLoad: Sendable, Equatable {
    package var queued: Int
    package var inFlight: Int
    package var resting: Int
    package var fanOuts: Int
    package var claims: Int
    /// Pushes that wait in the `deferred` partitions that are ours.
    package var deferred: Int
    /// About how many records of these partitions are left in Kafka, since there was no room for
    /// their pushes.
    package var forgotten: Int
    /// Tokens of these partitions that were sent a push and are owed none: their rows keep the time
    /// until the minimum gap is over.
    package var tokensWithinGap: Int
    /// Deferred pushes that have expired by this worker's clock alone: they are neither sent nor
    /// ended.
    package var heldBack: Int
    package var unacknowledged: Int
    /// How many of the unacknowledged records Kafka has refused, so that they are produced again.
    package var refused: Int
    package var payloadBytes: Int

    package init(
        queued: Int = 0, inFlight: Int = 0, resting: Int = 0, fanOuts: Int = 0, claims: Int = 0,
        deferred: Int = 0, forgotten: Int = 0, tokensWithinGap: Int = 0, heldBack: Int = 0,
        unacknowledged: Int = 0, refused: Int = 0, payloadBytes: Int = 0
    ) {
        self.queued = queued
        self.inFlight = inFlight
        self.resting = resting
        self.fanOuts = fanOuts
        self.claims = claims
        self.deferred = deferred
        self.forgotten = forgotten
        self.tokensWithinGap = tokensWithinGap
        self.heldBack = heldBack
        self.unacknowledged = unacknowledged
        self.refused = refused
        self.payloadBytes = payloadBytes
    }
}
