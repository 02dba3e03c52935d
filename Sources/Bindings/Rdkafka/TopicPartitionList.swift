// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// Partitions with an offset and an error each: what librdkafka's group and offset calls take and
/// fill in. Belongs to one thread.
package final class TopicPartitionList {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    package init(capacity: Int = 8) {
        precondition(capacity >= 0, "a list has room for partitions or for none")
        pointer = rd_kafka_topic_partition_list_new(CInt(capacity))
    }

    init(copying list: UnsafePointer<rd_kafka_topic_partition_list_t>) {
        pointer = rd_kafka_topic_partition_list_copy(list)
    }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }

    package func copy() -> TopicPartitionList { TopicPartitionList(copying: pointer) }

    package func append(topic: String, partition: Int32, offset: Int64 = Offset.unset) {
        rd_kafka_topic_partition_list_add(pointer, topic, partition).pointee.offset = offset
    }

    package var count: Int { Int(pointer.pointee.cnt) }
    package var isEmpty: Bool { count == 0 }

    package subscript(index: Int) -> Element {
        let element = pointer.pointee.elems[checked(index)]
        return Element(
            topic: String(cString: element.topic), partition: element.partition,
            offset: element.offset, error: ErrorCode(element.err))
    }

    package func setOffset(_ offset: Int64, at index: Int) {
        pointer.pointee.elems[checked(index)].offset = offset
    }

    /// Forgets commit metadata that a broker returned: if it were passed on to `assign`, the
    /// library would commit that old text again with each new offset.
    package func dropMetadata() {
        for index in 0..<count {
            let element = pointer.pointee.elems.advanced(by: index)
            guard let metadata = element.pointee.metadata else { continue }
            rd_kafka_mem_free(nil, metadata)
            element.pointee.metadata = nil
            element.pointee.metadata_size = 0
        }
    }

    package struct Element: Hashable, Sendable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64
        package var error: ErrorCode
    }

    private func checked(_ index: Int) -> Int {
        precondition(index >= 0 && index < count, "element \(index) of \(count)")
        return index
    }
}

/// Offsets that are not positions.
package enum Offset {
    /// RD_KAFKA_OFFSET_BEGINNING; as a time in `offsetsForTimes`: the log start offset.
    package static let beginning: Int64 = -2
    /// RD_KAFKA_OFFSET_END; as a time in `offsetsForTimes`: the high watermark.
    package static let end: Int64 = -1
    /// RD_KAFKA_OFFSET_INVALID: none.
    package static let unset: Int64 = -1001
}
