// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

// The member `shard`, which makes an event a part of a large event's audience.

package enum ShardField: UInt8, RecordField {
    case index, of, topic, partition, offset, notBefore, writtenAt
    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .index: .required("index", .integer(0...EventShard.counts.upperBound - 1))
        case .of: .required("of", .integer(EventShard.counts))
        case .topic: SourceField.topic.row
        case .partition: SourceField.partition.row
        case .offset: SourceField.offset.row
        case .notBefore: .optional("notBefore", .instant, "Its pushes wait until then.")
        case .writtenAt: .optional("writtenAt", .instant, "When the whole event was written.")
        }
    }
}

extension EventShard {
    /// The most parts that an event is split into.
    package static let countMax = 4096
    fileprivate static var counts: ClosedRange<Int64> { 1...Int64(countMax) }

    init(_ value: JSONValue, in field: some RecordField) throws(UnreadableRecord) {
        try self.init(MemberReader(value, in: field))
    }

    private init(_ fields: borrowing MemberReader<ShardField>) throws(UnreadableRecord) {
        let count = try fields.integer(.of, in: Self.counts)
        let index = try fields.integer(.index, in: 0...count - 1)
        let topic = try fields.text(.topic, bytes: RecordLimits.kafkaTopicBytes)
        self.init(
            tokens: TokenShard(index: UInt16(index), count: UInt16(count)), topic: String(topic),
            partition: Int32(try fields.integer(.partition, in: RecordLimits.partitions)),
            offset: try fields.integer(.offset, in: RecordLimits.offsets),
            notBefore: try fields.optionalInstant(.notBefore),
            writtenAt: try fields.optionalInstant(.writtenAt))
    }
}

extension ObjectWriter {
    mutating func member(_ field: Field, _ shard: EventShard?) {
        guard let shard else { return }
        member(field, of: ShardField.self) { json in
            json.member(.index, shard.tokens.index)
            json.member(.of, shard.tokens.count)
            json.member(.topic, shard.topic)
            json.member(.partition, shard.partition)
            json.member(.offset, shard.offset)
            json.member(.notBefore, shard.notBefore)
            json.member(.writtenAt, shard.writtenAt)
        }
    }
}
