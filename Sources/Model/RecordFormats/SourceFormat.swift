// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

// The position of a record, as deferred pushes, dead letters and shards write it.

package enum SourceField: UInt8, RecordField {
    case topic, partition, offset
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .topic: .required("topic", .text(RecordLimits.kafkaTopicBytes), "Kafka topic.")
        case .partition: .required("partition", .integer(RecordLimits.partitions))
        case .offset: .required("offset", .integer(RecordLimits.offsets))
        }
    }
}

extension DeadLetter.Source {
    init(_ value: JSONValue, in field: some RecordField) throws(UnreadableRecord) {
        try self.init(MemberReader(value, in: field))
    }

    private init(_ fields: borrowing MemberReader<SourceField>) throws(UnreadableRecord) {
        self.init(
            topic: String(try fields.text(.topic, bytes: RecordLimits.kafkaTopicBytes)),
            partition: Int32(try fields.integer(.partition, in: RecordLimits.partitions)),
            offset: try fields.integer(.offset, in: RecordLimits.offsets))
    }
}

extension ObjectWriter {
    mutating func member(_ field: Field, _ source: DeadLetter.Source?) {
        guard let source else { return }
        member(field, of: SourceField.self) { json in
            json.member(.topic, source.topic)
            json.member(.partition, source.partition)
            json.member(.offset, source.offset)
        }
    }
}
