// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import RegistrarRules
internal import Synchronization
internal import Testing

@testable internal import Registrar

@Suite struct `The replies of a batch` {
    @Test func `so many at once are answered, and all in order`() async {
        let running = Mutex((now: 0, most: 0))
        let replies = await RegistrarReply.all(Array(0..<100), atOnce: 7) {
            number throws(Problem) in
            running.withLock { running in
                running.now += 1
                running.most = max(running.most, running.now)
            }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            if number == 50 { throw Problem(.invalid, "fifty", remedy: "another number") }
            return RegistrarReply(status: 200, body: "\(number)")
        }
        #expect(replies.count == 100 && replies[50].status == 422)
        for (index, reply) in replies.enumerated() where index != 50 {
            #expect(reply.body == "\(index)")
        }
        #expect((1...7).contains(running.withLock { $0.most }))
        let none = await RegistrarReply.all([Int](), atOnce: 7) { _ throws(Problem) in
            RegistrarReply(status: 200)
        }
        #expect(none.isEmpty)
    }
}
