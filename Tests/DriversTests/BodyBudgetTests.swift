// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization
internal import Testing

@testable internal import HTTPListener

@Suite struct `A budget for bodies` {
    private final class Woken: Sendable { let ids = Mutex<[UInt64]>([]) }

    /// A caller's eighth is 8,000, the replicas' quarter 16,000, a replica's half 32,000, strangers' 8,000
    /// together, one address's and one device's 1,000.
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

    @Test func `a caller has an eighth, and a quarter is other replicas'`() {
        #expect(take(5_000, known("a")) && take(3_000, known("a")))
        #expect(!take(3_001, known("a"), 1))
        for caller in ["b", "c", "d", "e", "f"] { #expect(take(8_000, known(caller))) }
        #expect(!take(1, known("g"), 2))
        #expect(take(16_000, replica) && budget.free == 0)
        budget.giveBack(16_000, of: replica)
        #expect(ids.isEmpty)
        budget.giveBack(5_000, of: known("a"))
        #expect(ids == [1, 2] && budget.free == 21_000 - 3_002)
        #expect(!budget.stopWaiting(1))
    }

    @Test func `many devices that send nothing keep no caller waiting`() {
        func device(_ number: Int) -> BodyBudget.Payer {
            .init(caller: "jwt:\(number)", isDevice: true)
        }
        for number in 0..<5 {
            #expect(take(1_000, device(number)))
            #expect(!take(1, device(number), 1))
        }
        #expect(take(8_000, known("a")) && take(8_000, known("b")))
        // A request alone may be larger than a share.
        #expect(take(4_000, device(9)))
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
