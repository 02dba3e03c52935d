// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Pipeline

@Suite struct `The assignments of deferred` {
    private let first = AssignmentID(ordinal: 4, epoch: 1)
    private let second = AssignmentID(ordinal: 2, epoch: 2)

    @Test
    func `assignments of deferred are replaying until each has been read to its end or is over`() {
        var assignments = DeferredAssignments()
        var seen = [assignments.isReplaying]
        assignments.open(first, partition: 0)
        assignments.open(second, partition: 1)
        assignments.replayed(first)
        assignments.replayed(first)
        seen.append(assignments.isReplaying)
        assignments.close(second)
        seen.append(assignments.isReplaying)
        assignments.open(second, partition: 1)
        assignments.replayed(second)
        seen.append(assignments.isReplaying)
        assignments.close(first)
        seen.append(assignments.isReplaying)
        assignments.checkInvariants()
        #expect(seen == [false, true, false, false, false])
        #expect(assignments.open == [second])
    }

    @Test func `assignments of deferred are found by the whole identity, and by their partition`() {
        var assignments = DeferredAssignments()
        assignments.open(first, partition: 7)
        assignments.close(first)
        let next = AssignmentID(ordinal: first.ordinal, epoch: 3)
        assignments.open(next, partition: 7)
        #expect(!assignments.isOpen(first) && assignments.isOpen(next))
        #expect(!assignments.isOpen(second), "of an events topic")
        #expect(!assignments.isOpen(AssignmentID(ordinal: 9, epoch: 3)))
        #expect(assignments.assignment(ofPartition: 7) == next)
        #expect(assignments.assignment(ofPartition: 0) == nil)
        #expect(assignments.partition(of: next) == 7 && !assignments.isReplayed(next))
    }
}
