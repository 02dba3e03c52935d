// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Pipeline

/// How much of a bound a topic has taken when it must wait.
@Suite struct `Shares of topics` {
    @Test(arguments: [(100, true), (99, false)])
    func `a topic waits that has taken half of its equal part, and not with less`(
        taken: Int, isWaiting: Bool
    ) {
        var turns = TopicTurns(topics: 2)
        let bound = EventBound(
            taken: [taken, 400 - taken], total: 400, isShort: true, isHalfFree: false)
        let isChanged = turns.next([bound], now: MonotonicTime(nanoseconds: 0))
        let (first, second) = (turns.isWaiting(0), turns.isWaiting(1))
        #expect(isChanged && first == isWaiting && second)
    }
}
