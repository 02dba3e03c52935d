// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// A queue of the library's. Must go before its client is closed and destroyed.
package final class EventQueue {
    let pointer: OpaquePointer
    private let client: Client
    /// Keeps the descriptor open for as long as the library may write to it.
    private var wakeOwner: AnyObject?
    /// Copied by the library when it is handed over: eight bytes, as an eventfd wants.
    private static let one: UInt64 = 1

    /// Where everything of a consumer arrives, once `pollEverythingAsConsumer` was called.
    package static func ofConsumer(_ client: Client) -> EventQueue? {
        rd_kafka_queue_get_consumer(client.pointer).map { EventQueue($0, client) }
    }

    /// Where the delivery reports and errors of a producer arrive.
    package static func main(of client: Client) -> EventQueue {
        EventQueue(rd_kafka_queue_get_main(client.pointer), client)
    }

    /// A queue of its own, for the answers to requests.
    package convenience init(for client: Client) {
        self.init(rd_kafka_queue_new(client.pointer), client)
    }

    private init(_ pointer: OpaquePointer, _ client: Client) {
        self.pointer = pointer
        self.client = client
    }

    deinit {
        if wakeOwner != nil { rd_kafka_queue_io_event_enable(pointer, -1, nil, 0) }
        rd_kafka_queue_destroy(pointer)
    }

    /// From now on the library writes to this non-blocking eventfd when the queue stops being
    /// empty, and not again before the queue is read: drain it before sleeping.
    ///
    /// - Parameter owner: closes the descriptor when it goes; it is held until then.
    package func wake(descriptor: CInt, owner: AnyObject) {
        precondition(
            descriptor >= 0 && wakeOwner == nil,
            "a queue wakes only one descriptor, and that is open")
        wakeOwner = owner
        withUnsafeBytes(of: Self.one) { payload in
            rd_kafka_queue_io_event_enable(
                pointer, descriptor, payload.baseAddress, payload.count)
        }
    }

    /// The next event, which the caller destroys; nil when none is there. Never waits.
    func poll() -> OpaquePointer? { rd_kafka_queue_poll(pointer, 0) }

    /// The next event, which the caller destroys; nil when none came in time.
    func poll(timeout: Duration) -> OpaquePointer? {
        rd_kafka_queue_poll(pointer, timeout.milliseconds)
    }
}
