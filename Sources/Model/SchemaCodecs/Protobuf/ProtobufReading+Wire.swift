// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension ProtobufReading {
    struct Tag: Equatable {
        var number: UInt32
        var wire: UInt8

        static let varint: UInt8 = 0
        static let fixed64: UInt8 = 1
        static let sized: UInt8 = 2
        static let fixed32: UInt8 = 5
    }

    mutating func tag(_ cursor: inout ByteCursor) -> Tag? {
        guard step() else { return nil }
        guard let raw = cursor.varint() else {
            fault = cursor.fault
            return nil
        }
        guard let word = UInt32(exactly: raw), word >= 8 else {
            fault = .fieldNumber
            return nil
        }
        return Tag(number: word >> 3, wire: UInt8(word & 7))
    }

    /// Passes over the value after a tag.
    mutating func skip(_ tag: Tag, _ cursor: inout ByteCursor) -> Bool {
        switch tag.wire {
        case Tag.varint: return cursor.varint() != nil || fail(cursor.fault)
        case Tag.fixed64: return cursor.skip(8) || fail(.endsTooEarly)
        case Tag.sized: return sized(&cursor) != nil
        case Tag.fixed32: return cursor.skip(4) || fail(.endsTooEarly)
        case 3: return skipGroup(tag.number, &cursor)
        case 4: return fail(.strayEndGroup)
        default: return fail(.wireType)
        }
    }

    mutating func sized(_ cursor: inout ByteCursor) -> UnsafeRawBufferPointer? {
        guard let length = cursor.varint(), let bytes = cursor.take(length) else {
            fault = cursor.fault
            return nil
        }
        return bytes
    }

    private mutating func skipGroup(_ number: UInt32, _ cursor: inout ByteCursor) -> Bool {
        guard enter() else { return false }
        while !cursor.isAtEnd {
            guard let tag = tag(&cursor) else { return false }
            if tag.wire == 4 {
                depth -= 1
                return tag.number == number || fail(.strayEndGroup)
            }
            guard skip(tag, &cursor) else { return false }
        }
        return fail(.endsTooEarly)
    }
}
