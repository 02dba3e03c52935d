// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// The memory that the requests of all connections together may take. A request takes what its head
/// announces before a byte of its body is read, and gives it back with its answer; until there is room
/// its connection is not read. Nobody has more than a share, so that one caller who sends bodies
/// slowly keeps no other waiting.
final class BodyBudget: Sendable {
    typealias ID = OpenConnections.ID

    private struct Waiter {
        let id: ID
        let bytes: Int
        let owner: String
        let wake: @Sendable () -> Void
    }

    private struct State {
        var free: Int
        var taken: [String: Int] = [:]
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

    /// What one caller may have: half; those who have not shown who they are, an eighth together.
    private func share(of owner: String) -> Int { owner.isEmpty ? bytes / 8 : bytes / 2 }

    /// Takes so many bytes, or waits for them.
    /// - Parameters:
    ///   - owner: who sends the request; empty for somebody who has not shown it.
    ///   - wake: is called once they were taken, if they were not at once.
    /// - Returns: whether they were taken at once.
    func take(
        _ bytes: Int, of owner: String, for id: ID, wake: @escaping @Sendable () -> Void
    ) -> Bool {
        state.withLock { state in
            if take(bytes, of: owner, &state) { return true }
            state.waiters.append(Waiter(id: id, bytes: bytes, owner: owner, wake: wake))
            return false
        }
    }

    private func take(_ bytes: Int, of owner: String, _ state: inout State) -> Bool {
        let taken = state.taken[owner, default: 0]
        // A request alone may be larger than a share.
        guard bytes <= state.free, taken == 0 || taken + bytes <= share(of: owner) else {
            return false
        }
        state.free -= bytes
        state.taken[owner] = taken + bytes
        return true
    }

    func giveBack(_ bytes: Int, of owner: String) {
        let woken = state.withLock { state in
            state.free += bytes
            let left = state.taken[owner, default: 0] - bytes
            state.taken[owner] = left > 0 ? left : nil
            guard !state.waiters.isEmpty else { return [Waiter]() }
            var woken: [Waiter] = []
            var waiting: [Waiter] = []
            for waiter in state.waiters {
                if take(waiter.bytes, of: waiter.owner, &state) {
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
