// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The partitions of `deferred` that are ours, and which of them have been read to their end. A
/// look-up is one array access, since every record needs one.
struct DeferredAssignments {
    private struct Entry {
        let id: AssignmentID
        let partition: Int32
        var isReplayed = false
        /// One past the last record that was read.
        var nextOffset: Int64 = 0
    }

    /// Indexed by ordinal; nil for a partition that is not ours or not of `deferred`.
    private var entries: [Entry?] = []
    /// How many have not been read to their end.
    private var replaying = 0

    var isReplaying: Bool { replaying > 0 }

    mutating func open(_ id: AssignmentID, partition: Int32) {
        let ordinal = Int(id.ordinal)
        while entries.count <= ordinal { entries.append(nil) }
        precondition(entries[ordinal] == nil, "a partition is assigned at most once at a time")
        entries[ordinal] = Entry(id: id, partition: partition)
        replaying += 1
    }

    /// A record was read.
    mutating func received(_ id: AssignmentID, offset: Int64) {
        entries[Int(id.ordinal)]!.nextOffset = offset + 1
    }

    func nextOffset(of id: AssignmentID) -> Int64 { entry(id)!.nextOffset }

    /// The partition has been read to its end.
    mutating func replayed(_ id: AssignmentID) {
        precondition(isOpen(id), "only a partition that is ours reaches its end: \(id)")
        if !isReplayed(id) { replaying -= 1 }
        entries[Int(id.ordinal)]!.isReplayed = true
    }

    mutating func close(_ id: AssignmentID) {
        if !isReplayed(id) { replaying -= 1 }
        entries[Int(id.ordinal)] = nil
    }

    func isOpen(_ id: AssignmentID) -> Bool { entry(id) != nil }
    func isReplayed(_ id: AssignmentID) -> Bool { entry(id)!.isReplayed }
    func partition(of id: AssignmentID) -> Int32 { entry(id)!.partition }

    /// The assignment of this partition; nil where it is not ours.
    func assignment(ofPartition partition: Int32) -> AssignmentID? {
        entries.lazy.compactMap(\.self).first { $0.partition == partition }?.id
    }

    var open: [AssignmentID] { entries.compactMap { $0?.id } }

    private func entry(_ id: AssignmentID) -> Entry? {
        guard id.ordinal < entries.count, let entry = entries[Int(id.ordinal)], entry.id == id
        else { return nil }
        return entry
    }

    func checkInvariants() {
        precondition(
            entries.count { $0?.isReplayed == false } == replaying,
            "the count of replays is that of the assignments not yet replayed")
    }
}
