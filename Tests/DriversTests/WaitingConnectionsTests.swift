// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import Testing

@testable import HTTPListener

@Suite struct `Waiting connections` {
    private static let now = NIODeadline.now()

    @Test func `the trusted come first in their order, then the newest of the doubtful`() {
        var waiting = WaitingConnections<Int>(countMax: 10, timeMax: .seconds(5))
        for number in 1...3 { waiting.append(number, isDoubtful: true, now: Self.now) }
        for number in 4...6 { waiting.append(number, isDoubtful: false, now: Self.now) }
        #expect(
            [true, false, true, false, true, true, true, true].map { isAllowed in
                waiting.next { isAllowed }
            } == [4, 5, 6, nil, 3, 2, 1, nil])
        #expect(waiting.count == 0)
    }

    @Test func `who has waited too long is given up`() {
        var waiting = WaitingConnections<Int>(countMax: 10, timeMax: .seconds(5))
        for (number, isDoubtful) in [true, false, true, false].enumerated() {
            waiting.append(
                number, isDoubtful: isDoubtful, now: Self.now + .seconds(number < 2 ? 0 : 1))
        }
        #expect(waiting.givenUp(now: Self.now + .seconds(5)).isEmpty)
        #expect(waiting.givenUp(now: Self.now + .milliseconds(5001)) == [1, 0])
        #expect(waiting.removeAll() == [3, 2])
        #expect(waiting.count == 0)
    }

    @Test func `where too many wait the oldest are given up`() {
        var waiting = WaitingConnections<Int>(countMax: 2, timeMax: .seconds(5))
        for number in 1...4 {
            waiting.append(
                number, isDoubtful: number.isMultiple(of: 2),
                now: Self.now + .seconds(Int64(number)))
        }
        #expect(waiting.givenUp(now: Self.now + .seconds(4)) == [1, 2])
        waiting.append(5, isDoubtful: true, now: Self.now + .seconds(5))
        #expect(waiting.givenUp(now: Self.now + .seconds(5)) == [3])
    }
}
