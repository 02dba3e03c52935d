// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

/// A table of deferred pushes whose rows may answer for later events.
private struct JoiningBench: ~Copyable {
    var tracker = OffsetTracker(registrationGrace: .zero)
    var table = DeferredTable(routes: 2, seed: 5)
    let assignment = AssignmentID(ordinal: 0, epoch: 1)

    init() { tracker.openTable(assignment, partition: 0) }

    func push(dueIn seconds: Int) -> PushContent {
        var push = PushContent(
            type: .controls, priority: 10, expiration: .immediate,
            expiresAt: .after(.seconds(600)), origin: nil, readSequence: 1, subject: .none,
            subjectTag: 0)
        push.notBefore = .after(.seconds(seconds))
        return push
    }

    mutating func insert(dueIn seconds: Int) -> UInt32 {
        let content = DeferredContent(
            push(dueIn: seconds), past: PushRequest.Past(attempts: 0, firstTriedAt: nil))
        let token: [UInt8] = [1]
        return token.withUnsafeBytes { bytes in
            table.insert(
                content,
                of: DeferredTable.Key(
                    route: RouteID(rawValue: 0), token: bytes, coalescingKey: 0),
                at: DeferredTable.Place(
                    assignment, partition: 0, offset: 1, saidAt: 1, isActive: true), &tracker)
        }
    }

    func answers(_ row: UInt32, dueIn seconds: Int) -> Bool {
        table.answers(row, for: push(dueIn: seconds), now: .after(.zero))
    }
}

@Suite struct `A deferred row that later events join` {
    @Test func `answers for an event that is due when it wakes or before, and for no later one`() {
        var bench = JoiningBench()
        let row = bench.insert(dueIn: 5)
        let answers = [
            bench.answers(row, dueIn: 4), bench.answers(row, dueIn: 5),
            bench.answers(row, dueIn: 6),
        ]
        #expect(answers == [true, true, false])
    }
}
