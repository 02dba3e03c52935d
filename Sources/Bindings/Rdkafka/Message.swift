// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// A message, or an error that travels as one. Owns its place in the fetch response: one retained
/// message pins the whole response, so read it and let it go.
package struct Message: ~Copyable {
    let pointer: UnsafeMutablePointer<rd_kafka_message_t>

    deinit { rd_kafka_message_destroy(pointer) }

    /// Gives the pointer up: the caller must destroy the message.
    consuming func release() -> UnsafeMutablePointer<rd_kafka_message_t> {
        let pointer = pointer
        discard self
        return pointer
    }

    package var error: ErrorCode { ErrorCode(pointer.pointee.err) }

    /// The library's words for `error`.
    package var errorText: String {
        guard let text = rd_kafka_message_errstr(pointer) else { return error.text }
        return String(cString: text)
    }

    /// Equal for messages of one topic for as long as a `Topic` of that name is alive; nil on
    /// errors that concern no topic.
    package var topicIdentity: OpaquePointer? { pointer.pointee.rkt }

    /// The topic's name. It allocates, so it is for paths that are not hot.
    package var topicName: String? {
        guard let topic = pointer.pointee.rkt, let name = rd_kafka_topic_name(topic) else {
            return nil
        }
        return String(cString: name)
    }

    package var partition: Int32 { pointer.pointee.partition }
    package var offset: Int64 { pointer.pointee.offset }

    /// The timestamp in milliseconds since 1970 UTC; -1 when the broker gave none.
    package var timestampMilliseconds: Int64 { rd_kafka_message_timestamp(pointer, nil) }

    /// The key; nil if there is none, not if it is empty. Valid as long as the message.
    package var key: UnsafeRawBufferPointer? {
        guard let key = pointer.pointee.key else { return nil }
        return UnsafeRawBufferPointer(start: key, count: pointer.pointee.key_len)
    }

    /// The value; nil for a tombstone, not if it is empty. Valid as long as the message.
    package var value: UnsafeRawBufferPointer? {
        guard let value = pointer.pointee.payload else { return nil }
        return UnsafeRawBufferPointer(start: value, count: pointer.pointee.len)
    }

    /// The last header of this name. The first call parses and copies all headers of the message;
    /// a message nobody asks costs nothing.
    ///
    /// - Parameter name: ends with a zero.
    package func header(_ name: UnsafePointer<UInt8>) -> UnsafeRawBufferPointer? {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(pointer, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR else {
            return nil
        }
        var value: UnsafeRawPointer?
        var size = 0
        let found = name.withMemoryRebound(to: CChar.self, capacity: 1) { name in
            rd_kafka_header_get_last(headers, name, &value, &size)
        }
        guard found == RD_KAFKA_RESP_ERR_NO_ERROR, let value else { return nil }
        return UnsafeRawBufferPointer(start: value, count: size)
    }

    /// Every header in order, at most `countMax` of them; a null value counts as empty.
    package func headers(countMax: Int) -> [(name: String, value: [UInt8])] {
        var headers: OpaquePointer?
        guard rd_kafka_message_headers(pointer, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR else {
            return []
        }
        var result: [(name: String, value: [UInt8])] = []
        var name: UnsafePointer<CChar>?
        var value: UnsafeRawPointer?
        var size = 0
        while result.count < countMax,
            rd_kafka_header_get_all(headers, result.count, &name, &value, &size)
                == RD_KAFKA_RESP_ERR_NO_ERROR
        {
            let bytes = value.map { UnsafeRawBufferPointer(start: $0, count: size) }
            result.append((String(cString: name!), bytes.map(Array.init) ?? []))
        }
        return result
    }
}
