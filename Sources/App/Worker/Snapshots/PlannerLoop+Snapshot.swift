// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel

/// Writes the index when the worker has stopped, and never while it serves: nothing else happens on the
/// planner's thread for as long as that takes.
extension PlannerLoop {
    /// Ends the worker if the snapshot that the index was begun with has turned out to be wrong; it is
    /// gone then, so the next start reads everything.
    ///
    /// - Parameter isComplete: whether everything has been read.
    /// - Returns: whether the index is wrong.
    mutating func snapshotIsWrong(isComplete: Bool, now: Now) -> Bool {
        guard let snapshots, snapshots.begunWith != nil, consumer == nil else { return false }
        let isElsewhere = tables.isAnotherLog || tables.isOutsideLog
        let failure = isElsewhere ? tables.failure.map { "\($0)" } : nil
        let newest = tables.newestTime(topic: WorkerPlan.registrationsTable)
        let lateness = isComplete ? snapshots.lateness(newest: newest, now: now.wall) : nil
        guard let reason = failure ?? lateness else { return false }
        snapshots.store.discard(reason)
        self.snapshots?.wasWrong()
        lifecycle.clientFailed("the index was begun with a snapshot that is wrong: \(reason)")
        return true
    }

    /// Writes the index, if it is worth it and fits in what is left of the time to stop.
    mutating func keepIndex(_ end: WorkerEnd, now: Now) {
        guard let snapshots, end == .stopped, let stopBegan = snapshots.stopBegan else { return }
        StopWatch.note("writing the snapshot of the index")
        switch snapshots.stamp(plan, tables, cluster: readers.cluster, now: now) {
        case .failure(let fault): fault.reason.map(snapshots.store.notWritten)
        case .success(let stamp):
            if SnapshotUse.isWorthless(stamp, after: snapshots.store.stamp()) { return }
            // That has read the disk.
            let now = Self.clock()
            let left =
                plan.live.shutdownTimeout - (now.monotonic - stopBegan) - Self.snapshotReserve
            let bytes = pipeline.indexFileBytes
            let needed = Duration.seconds(Double(bytes) / Self.snapshotBytesPerSecond)
            guard needed <= left else {
                return snapshots.store.notWritten(
                    "\(bytes >> 20) MiB do not fit in the \(max(0, left.components.seconds)) s that "
                        + "are left of delivery.shutdownTimeout: raise it, or run lamplighter index keep"
                )
            }
            snapshots.store.write(
                &pipeline, stamp,
                SnapshotStore.Manner(isSynchronised: false, deadline: .now + left))
        }
    }

    /// What a disk is taken for before it is tried.
    private static let snapshotBytesPerSecond = 512e6
    /// For the end of the process: the memory of a large index is freed.
    private static let snapshotReserve = Duration.seconds(1)
}
