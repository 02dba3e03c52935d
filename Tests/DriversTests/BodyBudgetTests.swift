// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization
internal import Testing

@testable internal import HTTPListener

@Suite struct `A budget for bodies` {
    private final class Woken: Sendable { let ids = Mutex<[UInt64]>([]) }

    /// Half is 32,000, the replicas' quarter 16,000, strangers' 8,000, one address's 1,000.
    private let budget = BodyBudget(bytes: 64_000)
    private let woken = Woken()
    private let replica = BodyBudget.Payer(caller: "registrar for a", isReplica: true)
    private var ids: [UInt64] { woken.ids.withLock { $0 } }

    private func take(_ bytes: Int, _ payer: BodyBudget.Payer, _ id: UInt64 = 0) -> Bool {
        budget.take(bytes, of: payer, for: id) { [woken] in
            woken.ids.withLock { $0.append(id) }
        }
    }

    private func known(_ name: String) -> BodyBudget.Payer { .init(caller: name) }

    private func stranger(_ address: String) -> BodyBudget.Payer {
        .init(caller: "", address: address)
    }

    @Test func `a caller has half, and a quarter is other replicas'`() {
        #expect(take(20_000, known("a")) && take(12_000, known("a")))
        #expect(!take(12_001, known("a"), 1))
        #expect(take(16_000, known("b")))
        #expect(!take(1, known("c"), 2))
        #expect(take(16_000, replica) && budget.free == 0)
        budget.giveBack(20_000, of: known("a"))
        #expect(ids == [2])
        budget.giveBack(16_000, of: replica)
        #expect(ids == [2, 1] && budget.free == 35_999 - 12_001)
        #expect(!budget.stopWaiting(1))
    }

    @Test func `strangers have a share by address, and one together`() {
        // Alone it may be larger than the share of its address.
        #expect(take(5_000, stranger("A")))
        #expect(!take(1, stranger("A"), 1))
        #expect(take(3_000, stranger("B")))
        #expect(!take(1, stranger("C"), 2))
        #expect(take(30_000, known("a")))
        budget.giveBack(3_000, of: stranger("B"))
        #expect(ids == [2])
        budget.giveBack(5_000, of: stranger("A"))
        #expect(ids == [2, 1])
    }

    @Test func `a request larger than what is not the replicas' is taken alone`() {
        #expect(take(60_000, known("a")))
        #expect(!take(1, known("b"), 1))
        #expect(take(4_000, replica))
        budget.giveBack(60_000, of: known("a"))
        #expect(ids == [1])
    }

    @Test func `who waits no more is not woken`() {
        #expect(take(32_000, known("a")))
        #expect(!take(1, known("a"), 1))
        #expect(budget.stopWaiting(1) && !budget.stopWaiting(1))
        budget.giveBack(32_000, of: known("a"))
        #expect(ids.isEmpty && budget.free == 64_000)
    }
}
