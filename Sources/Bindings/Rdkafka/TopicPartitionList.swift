// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Glibc

/// Partitions with an offset and an error each: what librdkafka's group and offset calls take and
/// fill in. Belongs to one thread.
package final class TopicPartitionList {
    let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

    package init(capacity: Int = 8) {
        precondition(capacity >= 0, "a list's capacity is at least 0")
        pointer = rd_kafka_topic_partition_list_new(CInt(capacity))
    }

    init(copying list: UnsafePointer<rd_kafka_topic_partition_list_t>) {
        pointer = rd_kafka_topic_partition_list_copy(list)
    }

    deinit { rd_kafka_topic_partition_list_destroy(pointer) }

    package func copy() -> TopicPartitionList { TopicPartitionList(copying: pointer) }

    /// - Parameter metadata: is committed with the offset. ASCII without zeros, since the library
    ///   and brokers change or cut any other text.
    package func append(
        topic: String, partition: Int32, offset: Int64 = Offset.unset, metadata: String? = nil
    ) {
        let element = rd_kafka_topic_partition_list_add(pointer, topic, partition)!
        element.pointee.offset = offset
        guard let metadata, !metadata.isEmpty else { return }
        precondition(
            metadata.utf8.allSatisfy { (1...127).contains($0) }, "metadata is ASCII without a NUL")
        // The list frees it with its elements, by the C library's `free`.
        element.pointee.metadata = UnsafeMutableRawPointer(strdup(metadata))
        element.pointee.metadata_size = metadata.utf8.count
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

    /// The commit metadata that a broker returned, by element; empty before `takeMetadata`.
    package private(set) var metadata: [String?] = []

    /// Takes commit metadata out of the elements into `metadata`: if it were passed on to `assign`,
    /// the library would commit that old text again with each new offset.
    func takeMetadata() {
        metadata = (0..<count).map { index in
            let element = pointer.pointee.elems.advanced(by: index)
            guard let bytes = element.pointee.metadata else { return nil }
            // No zero ends the text. One inside ends what the library has copied, whatever the size.
            let whole = UnsafeRawBufferPointer(start: bytes, count: element.pointee.metadata_size)
            let text = String(decoding: whole.prefix { $0 != 0 }, as: UTF8.self)
            rd_kafka_mem_free(nil, bytes)
            element.pointee.metadata = nil
            element.pointee.metadata_size = 0
            return text.isEmpty ? nil : text
        }
    }

    package struct Element: Hashable, Sendable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64
        package var error: ErrorCode
    }

    private func checked(_ index: Int) -> Int {
        precondition(
            index >= 0 && index < count,
            "an index lies below the list's count: \(index) of \(count)")
        return index
    }
}

/// Offsets that are not positions.
package enum Offset {
    /// RD_KAFKA_OFFSET_BEGINNING; as a time in `offsetsForTimes`: the log start offset.
    package static let beginning: Int64 = -2
    /// RD_KAFKA_OFFSET_TAIL: so many records before the end.
    package static func tail(_ count: Int) -> Int64 { -2000 - Int64(count) }
    /// RD_KAFKA_OFFSET_END; as a time in `offsetsForTimes`: the high watermark.
    package static let end: Int64 = -1
    /// RD_KAFKA_OFFSET_INVALID: none.
    package static let unset: Int64 = -1001
}
