// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

/// One record, lent for the length of a callback. Its bytes lie in the fetch response; copy what
/// must outlive the callback.
package struct KafkaRecord: ~Copyable {
    private let message: Message
    /// The position of its topic in the list that the reader was started with.
    package let topic: Int
    /// The assignment under which an `EventConsumer` was given it; nil for a record of a table, whose
    /// partitions are assigned to nobody.
    package let assignment: AssignmentID?

    init(_ message: consuming Message, topic: Int, assignment: AssignmentID? = nil) {
        self.message = message
        self.topic = topic
        self.assignment = assignment
    }

    package var partition: Int32 { message.partition }
    package var offset: Int64 { message.offset }
    /// Since 1970 UTC, by the producer or by the broker as the topic says; -1 when unknown.
    package var timestampMilliseconds: Int64 { message.timestampMilliseconds }
    /// Nil is null, which empty is not.
    package var key: UnsafeRawBufferPointer? { message.key }
    /// Nil is null (a tombstone), which empty is not.
    package var value: UnsafeRawBufferPointer? { message.value }

    /// The value of the last header of this name; nil when there is none. The first call on a
    /// record parses all its headers.
    package func header(_ name: StaticString) -> UnsafeRawBufferPointer? {
        // A literal's bytes end with a zero.
        name.withUTF8Buffer { message.header($0.baseAddress!) }
    }

    /// All of them, for a copy of the record; of a record with more than 64 the first 64.
    package var headers: [(name: String, value: [UInt8])] { message.headers(countMax: 64) }

    package func header(named name: String) -> UnsafeRawBufferPointer? {
        name.withCString { name in
            name.withMemoryRebound(to: UInt8.self, capacity: 1) { message.header($0) }
        }
    }
}
