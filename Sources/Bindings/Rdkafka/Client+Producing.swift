// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

extension Client {
    /// The partition number that lets the topic's partitioner choose.
    package static let anyPartition: Int32 = -1

    /// Queues one message; key, value and headers are copied. A nil value is a tombstone, an empty
    /// one is not. The ticket comes back in a delivery report if and only if this does not throw.
    package func produce(
        to topic: Topic, partition: Int32, key: UnsafeRawBufferPointer?,
        value: UnsafeRawBufferPointer?, headers: consuming MessageHeaders?, ticket: UInt64
    ) throws(RdkafkaError) {
        let opaque = UnsafeMutableRawPointer(bitPattern: UInt(ticket))
        let key = Self.nonNull(key)
        let value = Self.nonNull(value)
        guard let headers else {
            try RdkafkaError.check(
                CRdkafka_produce(
                    pointer, topic.pointer, partition, key.start, key.count, value.start,
                    value.count, opaque))
            return
        }
        let code = CRdkafka_produceWithHeaders(
            pointer, topic.pointer, partition, key.start, key.count, value.start, value.count,
            headers.pointer, opaque)
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { headers.release() }
        try RdkafkaError.check(code)
    }

    /// An empty buffer may have no address, and a null pointer would make it a null value.
    private static func nonNull(
        _ bytes: UnsafeRawBufferPointer?
    ) -> (start: UnsafeRawPointer?, count: Int) {
        guard let bytes else { return (nil, 0) }
        return (bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1), bytes.count)
    }

    /// Serves delivery reports without waiting, and returns them. The bound on their number is the
    /// one on messages in the producer's queue.
    package func takeDeliveryReports() -> [DeliveryReport] {
        rd_kafka_poll(pointer, 0)
        guard !context.reports.isEmpty else { return [] }
        defer { context.reports.removeAll() }
        return context.reports
    }

    /// Sends what lingers and waits for the reports; false when some messages are still out.
    package func flush(timeout: Duration) -> Bool {
        rd_kafka_flush(pointer, timeout.milliseconds) == RD_KAFKA_RESP_ERR_NO_ERROR
    }

    /// The number of messages without a report yet, and of reports not yet served.
    package var outstandingMessages: Int { Int(rd_kafka_outq_len(pointer)) }
}

/// Headers for one message.
package struct MessageHeaders: ~Copyable {
    let pointer: OpaquePointer

    package init() { pointer = rd_kafka_headers_new(4) }

    deinit { rd_kafka_headers_destroy(pointer) }

    package func append(_ name: String, _ value: String) {
        var value = value
        value.withUTF8 { bytes in
            // Fails only for a read-only list.
            let code = rd_kafka_header_add(pointer, name, -1, bytes.baseAddress, bytes.count)
            precondition(code == RD_KAFKA_RESP_ERR_NO_ERROR, "rd_kafka_header_add: \(code)")
        }
    }

    /// Lets go of the headers without destroying them: the library owns them now.
    consuming func release() { discard self }
}
