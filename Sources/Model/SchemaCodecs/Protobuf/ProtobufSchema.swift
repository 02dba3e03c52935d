// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The messages and enums of a .proto file and of all that it imports, referring to each other by
/// their places.
struct ProtobufSchema: Sendable {
    enum FieldType: Sendable, Equatable {
        case double, float, int32, int64, uint32, uint64, sint32, sint64
        case fixed32, fixed64, sfixed32, sfixed64, bool, string, bytes
        case message(Int)
        case enumeration(Int)
        /// A type that no file defines: its place in `unresolved`.
        case unresolved(Int)
    }

    enum Cardinality: Sendable, Equatable {
        case single, repeated
        /// A map, whose values have the field's type.
        case map(key: FieldType)
    }

    struct Field: Sendable {
        var number: UInt32
        /// `json_name`, or the name in lower camel case.
        var jsonName: [UInt8]
        var type: FieldType
        var cardinality: Cardinality
        /// Which oneof of its message it belongs to.
        var oneof: Int?
    }

    struct Message: Sendable {
        var fullName: String
        var fields: [Field] = []
        /// The messages defined in it, in their order, without the entries of maps.
        var nested: [Int] = []
    }

    struct Enumeration: Sendable {
        var fullName: String
        /// Sorted by number; of several names for one number, the first.
        var values: [(number: Int32, name: [UInt8])] = []
    }

    var messages: [Message] = []
    var enumerations: [Enumeration] = []
    /// Why types are not known. It matters only where they are read.
    var unresolved: [String] = []
    /// The messages at the top of the file itself, in their order.
    var roots: [Int] = []

    /// The message that the indexes before a record's content name; nil if there is none.
    func message(_ indexes: MessageIndexes) -> Int? {
        var list = roots
        var found: Int?
        for index in indexes.path {
            guard list.indices.contains(index) else { return nil }
            found = list[index]
            list = messages[list[index]].nested
        }
        return found
    }

    /// About what the schema takes in memory.
    var byteCount: Int {
        let fields = messages.reduce(messages.count * 128) { sum, message in
            message.fields.reduce(sum) { $0 + 80 + $1.jsonName.count }
        }
        return enumerations.reduce(fields) { sum, type in
            type.values.reduce(sum + 64) { $0 + 48 + $1.name.count }
        }
    }
}

/// Which message of a schema a record holds, as Confluent's wire format has it before the message:
/// the message's place in the file, then its place in the message around it, and so on.
package struct MessageIndexes: Hashable, Sendable {
    /// In place and not in an array, so that reading them allocates nothing.
    private var indexes = SIMD8<UInt16>()
    private var count = 1

    /// The first message of the file, which is by far the most common.
    package static let first = MessageIndexes()

    /// As deep as the messages of records may be defined in other messages.
    static let countMax = 8

    private init() {}

    /// - Returns: nil if there are none, too many, or one that no schema has.
    init?(path: [Int]) {
        guard (1...Self.countMax).contains(path.count) else { return nil }
        for (position, index) in path.enumerated() {
            guard let small = UInt16(exactly: index) else { return nil }
            indexes[position] = small
        }
        count = path.count
    }

    var path: [Int] { (0..<count).map { Int(indexes[$0]) } }

    /// Reads the indexes, and returns them with the message that follows them.
    static func read(
        from content: UnsafeRawBufferPointer
    ) throws(UndecodableRecord) -> (MessageIndexes, message: UnsafeRawBufferPointer) {
        var cursor = ByteCursor(content)
        guard let count = cursor.zigzag() else { throw unreadable }
        if count == 0 { return (.first, rest(of: &cursor)) }
        guard (1...Int64(countMax)).contains(count) else { throw unreadable }
        var read = MessageIndexes()
        read.count = Int(count)
        for position in 0..<read.count {
            guard let index = cursor.zigzag(), let small = UInt16(exactly: index) else {
                throw unreadable
            }
            read.indexes[position] = small
        }
        return (read, rest(of: &cursor))
    }

    private static func rest(of cursor: inout ByteCursor) -> UnsafeRawBufferPointer {
        cursor.take(cursor.remaining)!
    }

    private static var unreadable: UndecodableRecord {
        UndecodableRecord(
            .frame,
            "a Protobuf message with a schema begins with the places of its type in the file, and "
                + "these cannot be read: have the producer use a serializer for a schema registry")
    }
}
