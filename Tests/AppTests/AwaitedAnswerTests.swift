// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Worker

@Suite struct `An awaited answer` {
    @Test func `an awaited answer is the first that is told, before it is asked for`() async {
        let answer = AwaitedAnswer<Int>()
        answer.tell(1)
        answer.tell(2)
        #expect(await answer.value == 1)
    }

    @Test func `an awaited answer is not waited for by a task that was cancelled`() async {
        let answer = AwaitedAnswer<Int>()
        let task = Task {
            await withTaskCancellationHandler {
                await answer.value
            } onCancel: {
                answer.tell(2)
            }
        }
        task.cancel()
        #expect(await task.value == 2)
        answer.tell(1)
    }
}
