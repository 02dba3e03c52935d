// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The partitions that are ours at the moment.
package struct OpenAssignments: Sendable {
    /// The partitions of events topics.
    package private(set) var events: [AssignmentID] = []
    /// The partitions of `deferred`.
    package private(set) var deferred: [AssignmentID] = []

    package func contains(_ id: AssignmentID) -> Bool {
        events.contains(id) || deferred.contains(id)
    }

    mutating func open(events newEvents: [AssignmentID], deferred newDeferred: [AssignmentID]) {
        events += newEvents
        deferred += newDeferred
        assert(
            Set((events + deferred).map(\.ordinal)).count == events.count + deferred.count,
            "a partition is assigned at most once")
    }

    /// Returns those of `ids` that were open: an assignment is closed once, whoever says so first.
    mutating func close(_ ids: [AssignmentID]) -> [AssignmentID] {
        let before = events.count + deferred.count
        let closed = ids.filter(contains)
        events.removeAll(where: closed.contains)
        deferred.removeAll(where: closed.contains)
        assert(
            before - closed.count == events.count + deferred.count,
            "each open assignment stands once, under one topic")
        return closed
    }
}
