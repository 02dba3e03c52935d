// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

/// One record, lent for the length of a callback. Its bytes lie in the fetch response, so the
/// callback must copy what has to outlive it.
package struct KafkaRecord: ~Copyable {
    private let message: Message
    /// The position of the record's topic in the list that the reader was started with.
    package let topic: Int
    /// The assignment under which an `EventConsumer` got the record; nil for a record that a
    /// `TableReader` read, outside any group.
    package let assignment: AssignmentID?

    init(_ message: consuming Message, topic: Int, assignment: AssignmentID? = nil) {
        self.message = message
        self.topic = topic
        self.assignment = assignment
    }

    package var partition: Int32 { message.partition }
    package var offset: Int64 { message.offset }
    /// The record's time in milliseconds since 1970 UTC, set by the producer or the broker as the
    /// topic is configured; -1 if unknown.
    package var timestampMilliseconds: Int64 { message.timestampMilliseconds }
    /// The record's key; nil if it is null, which differs from an empty one.
    package var key: UnsafeRawBufferPointer? { message.key }
    /// The record's value; nil for a tombstone, which differs from an empty value.
    package var value: UnsafeRawBufferPointer? { message.value }

    /// The value of the last header of this name; nil if there is none. The first call on a record
    /// parses all its headers.
    package func header(_ name: StaticString) -> UnsafeRawBufferPointer? {
        // The bytes of a string literal end with a zero.
        name.withUTF8Buffer { message.header($0.baseAddress!) }
    }

    /// The first 64 headers, for a copy of the record.
    package var headers: [(name: String, value: [UInt8])] { message.headers(countMax: 64) }

    package func header(named name: String) -> UnsafeRawBufferPointer? {
        name.withCString { name in
            name.withMemoryRebound(to: UInt8.self, capacity: 1) { message.header($0) }
        }
    }
}
