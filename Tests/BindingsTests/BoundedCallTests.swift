// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Synchronization
internal import Testing

@testable internal import Rdkafka

@Suite struct `A bounded call` {
    @Test(arguments: [true, false]) func `an answer is passed on`(answer: Bool) {
        #expect(BoundedCall.run(within: .seconds(600)) { answer } == answer)
    }

    @Test func `a call that never returns is left where it is`() {
        final class Latch: Sendable { let isOpen = Atomic(false) }
        let latch = Latch()
        let before = BoundedCall.leftCount.load(ordering: .relaxed)
        let answer = BoundedCall.run(within: .milliseconds(20)) {
            while !latch.isOpen.load(ordering: .relaxed) { usleep(1000) }
            return true
        }
        #expect(answer == nil)
        #expect(BoundedCall.leftCount.load(ordering: .relaxed) == before + 1)
        latch.isOpen.store(true, ordering: .relaxed)
        while BoundedCall.leftCount.load(ordering: .relaxed) > before { usleep(1000) }
    }
}
