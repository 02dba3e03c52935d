// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// A call that may never return. It runs on a thread of its own, which is left where it is if the call
/// takes too long, with what the call holds.
final class BoundedCall: Sendable {
    private enum Outcome: Int, AtomicRepresentable { case none, no, yes }

    private let outcome = Atomic(Outcome.none)
    private let body: @Sendable () -> Bool

    private init(_ body: @escaping @Sendable () -> Bool) { self.body = body }

    /// - Returns: nil if the call takes too long, or no thread can be had.
    static func run(within timeout: Duration, _ body: @escaping @Sendable () -> Bool) -> Bool? {
        let call = BoundedCall(body)
        let retained = Unmanaged.passRetained(call)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { call in
                Unmanaged<BoundedCall>.fromOpaque(call!).takeRetainedValue().run()
                return nil
            }, retained.toOpaque())
        guard code == 0 else {
            retained.release()
            return nil
        }
        pthread_detach(thread)
        let deadline = ContinuousClock.now + timeout
        while true {
            switch call.outcome.load(ordering: .acquiring) {
            case .yes: return true
            case .no: return false
            case .none: guard ContinuousClock.now < deadline else { return nil }
            }
            usleep(1000)
        }
    }

    private func run() { outcome.store(body() ? .yes : .no, ordering: .releasing) }
}
