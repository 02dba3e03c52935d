// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// The memory that the requests of all connections together may take. A request takes what its head
/// announces before a byte of its body is read, and gives it back with its answer; until there is room
/// its connection is not read. Nobody has more than a share, so that one caller who sends bodies
/// slowly keeps no other waiting. A quarter is kept for other replicas: two that each waited for the
/// other while their callers have all of it would wait for ever.
final class BodyBudget: Sendable {
    typealias ID = OpenConnections.ID

    struct Payer: Hashable, Sendable {
        /// Empty for a stranger, who has not shown who they are.
        var caller: String
        /// A stranger's; others' are none of the budget's business.
        var address = ""
        var isReplica = false
        /// One device, which has no more than a few requests at a time.
        var isDevice = false

        var isStranger: Bool { caller.isEmpty }
    }

    private struct Waiter {
        let id: ID
        let bytes: Int
        let payer: Payer
        let wake: @Sendable () -> Void
    }

    private struct State {
        var free: Int
        var taken: [Payer: Int] = [:]
        /// What strangers have together.
        var strangers = 0
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>
    private let bytes: Int

    /// What a request takes beside its body.
    static let requestBytes = 4096

    init(bytes: Int) {
        self.bytes = bytes
        state = Mutex(State(free: bytes))
    }

    /// What one caller may have: an eighth; a device, and the strangers of one address, a 64th; another
    /// replica, half, since it speaks for many.
    private func share(of payer: Payer) -> Int {
        if payer.isReplica { return bytes / 2 }
        return payer.isStranger || payer.isDevice ? bytes / 64 : bytes / 8
    }

    /// All strangers together.
    private var strangersMax: Int { bytes / 8 }
    private var keptForReplicas: Int { bytes / 4 }

    /// Takes so many bytes, or waits for them.
    /// - Parameters:
    ///   - payer: who sends the request.
    ///   - wake: is called once they were taken, if they were not at once.
    /// - Returns: whether they were taken at once.
    func take(
        _ bytes: Int, of payer: Payer, for id: ID, wake: @escaping @Sendable () -> Void
    ) -> Bool {
        state.withLock { state in
            if take(bytes, of: payer, &state) { return true }
            state.waiters.append(Waiter(id: id, bytes: bytes, payer: payer, wake: wake))
            return false
        }
    }

    private func take(_ bytes: Int, of payer: Payer, _ state: inout State) -> Bool {
        let taken = state.taken[payer, default: 0]
        // A request alone may be larger than a share.
        guard bytes <= state.free, taken == 0 || taken + bytes <= share(of: payer) else {
            return false
        }
        guard payer.isReplica || bytes <= state.free - keptForReplicas || state.taken.isEmpty else {
            return false
        }
        if payer.isStranger {
            guard state.strangers == 0 || state.strangers + bytes <= strangersMax else {
                return false
            }
            state.strangers += bytes
        }
        state.free -= bytes
        state.taken[payer] = taken + bytes
        return true
    }

    func giveBack(_ bytes: Int, of payer: Payer) {
        let woken = state.withLock { state in
            state.free += bytes
            if payer.isStranger { state.strangers -= bytes }
            let left = state.taken[payer, default: 0] - bytes
            state.taken[payer] = left > 0 ? left : nil
            guard !state.waiters.isEmpty else { return [Waiter]() }
            var woken: [Waiter] = []
            var waiting: [Waiter] = []
            for waiter in state.waiters {
                if take(waiter.bytes, of: waiter.payer, &state) {
                    woken.append(waiter)
                } else {
                    waiting.append(waiter)
                }
            }
            state.waiters = waiting
            return woken
        }
        for waiter in woken { waiter.wake() }
    }

    /// The connection waits no more.
    /// - Returns: whether it was waiting still; if not, what it waited for is its own.
    func stopWaiting(_ id: ID) -> Bool {
        state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return false }
            state.waiters.remove(at: index)
            return true
        }
    }

    /// The bytes that nobody has; for tests.
    var free: Int { state.withLock(\.free) }
}
