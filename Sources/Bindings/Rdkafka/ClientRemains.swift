// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Synchronization

/// What is left of a client that nobody holds any more: the handle, and the context that its
/// callbacks use until the handle is destroyed.
final class ClientRemains: @unchecked Sendable {
    // SAFETY: handed from the last owner to at most one thread, which destroys it and is done.
    private let pointer: OpaquePointer
    private let context: ClientContext

    /// How many handles are still to be destroyed. Those that never will be stay counted.
    static let count = Atomic<Int>(0)

    init(pointer: OpaquePointer, context: ClientContext) {
        self.pointer = pointer
        self.context = context
    }

    /// Destroys the handle on a thread of its own, since nobody can say how long that takes:
    /// librdkafka 2.0.2 never returns once a topic of a consumer was deleted (librdkafka 4187,
    /// 4724), and waits up to `session.timeout.ms` for a commit that has no coordinator. Where no
    /// thread can be had the handle is left as it is.
    func destroyInBackground() {
        Self.count.add(1, ordering: .relaxed)
        if DetachedThread.run({ [self] in destroy() }) { return }
        // The callbacks of what is left go on using the context.
        _ = Unmanaged.passRetained(self)
    }

    private func destroy() {
        // Without the flag this would close a consumer here, with no bound on the time it takes.
        rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
        withExtendedLifetime(context) {}
        Self.count.subtract(1, ordering: .relaxed)
    }
}
