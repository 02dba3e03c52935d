// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Glibc

/// What is left of a client that nobody holds any more: the handle, and the context that its
/// callbacks use until the handle is destroyed.
final class ClientRemains: @unchecked Sendable {
    // SAFETY: handed from the last owner to at most one thread, which destroys it and is done.
    private let pointer: OpaquePointer
    private let context: ClientContext

    init(pointer: OpaquePointer, context: ClientContext) {
        self.pointer = pointer
        self.context = context
    }

    func destroy() {
        // Without the flag this would close a consumer here, with no bound on the time it takes.
        rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
        withExtendedLifetime(context) {}
    }

    /// False when no thread could be had for it.
    func destroyInBackground() -> Bool {
        let remains = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { remains in
                Unmanaged<ClientRemains>.fromOpaque(remains!).takeRetainedValue().destroy()
                return nil
            }, remains.toOpaque())
        guard code == 0 else {
            remains.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
