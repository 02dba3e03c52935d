// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// A few messages, oldest first, at a fixed place: keeping them allocates nothing.
package struct MessageQueue: ~Copyable {
    private let pointers: UnsafeMutablePointer<UnsafeMutablePointer<rd_kafka_message_t>>
    private var first = 0
    private var end = 0
    package let capacity: Int

    package init(capacity: Int) {
        precondition(capacity > 0, "a queue has room for at least one message")
        pointers = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    deinit {
        for position in first..<end { rd_kafka_message_destroy(pointers[position]) }
        pointers.deallocate()
    }

    package var isEmpty: Bool { first == end }
    /// Whether there is no room. There is room again only when the last message has been taken.
    package var isFull: Bool { end == capacity }

    package mutating func append(_ message: consuming Message) {
        precondition(!isFull, "a message is added only while there is room")
        pointers[end] = message.release()
        end += 1
    }

    package mutating func popFirst() -> Message? {
        guard first < end else { return nil }
        let message = Message(pointer: pointers[first])
        first += 1
        if first == end { (first, end) = (0, 0) }
        return message
    }
}
