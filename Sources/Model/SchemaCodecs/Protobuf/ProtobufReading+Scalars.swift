// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

extension ProtobufProgram.Operation {
    /// The wire type of one value.
    var wire: UInt8 {
        switch self {
        case .int32, .int64, .uint32, .uint64, .sint32, .sint64, .bool, .enumeration:
            ProtobufReading.Tag.varint
        case .double, .fixed64, .sfixed64: ProtobufReading.Tag.fixed64
        case .float, .fixed32, .sfixed32: ProtobufReading.Tag.fixed32
        case .string, .bytes, .message, .timestamp, .duration, .decimal, .wrapper, .structure,
            .value,
            .list, .fieldMask:
            ProtobufReading.Tag.sized
        }
    }

    /// The wire type of one of several values that are packed; nil if they never are.
    var packedWire: UInt8? { wire == ProtobufReading.Tag.sized ? nil : wire }

    var isMessage: Bool {
        wire == ProtobufReading.Tag.sized && self != .string && self != .bytes
    }
}

extension ProtobufProgram.Field {
    /// Whether a value of this wire type is one of the field. Another one is passed over, as
    /// Protobuf's own readers do.
    func accepts(_ wire: UInt8) -> Bool {
        if cardinality == .map { return wire == ProtobufReading.Tag.sized }
        return wire == operation.wire
            || (cardinality == .repeated && wire == ProtobufReading.Tag.sized)
    }
}

extension ProtobufReading {
    /// - Parameter place: that of an enum.
    mutating func writeScalar(
        _ operation: ProtobufProgram.Operation, _ place: Int32, _ cursor: inout ByteCursor,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard step() else { return false }
        switch operation.wire {
        case Tag.varint:
            guard let value = cursor.varint() else { return fail(cursor.fault) }
            write(varint: value, operation, place, program, &output)
        case Tag.fixed64:
            guard let value = cursor.fixed64() else { return fail(.endsTooEarly) }
            switch operation {
            case .double: write(Double(bitPattern: value), &output)
            case .sfixed64: output.append(integer: Int64(bitPattern: value))
            default: output.append(unsigned: value)
            }
        case Tag.fixed32:
            guard let value = cursor.fixed32() else { return fail(.endsTooEarly) }
            switch operation {
            case .float: write(Float(bitPattern: value), &output)
            case .sfixed32: output.append(integer: Int64(Int32(bitPattern: value)))
            default: output.append(unsigned: UInt64(value))
            }
        default:
            guard let bytes = sized(&cursor) else { return false }
            if operation == .string { return output.append(string: bytes) || fail(.notUTF8) }
            output.append(base64: bytes)
        }
        return true
    }

    /// Integers of 32 bits are the lowest 32 of those on the wire, as Protobuf's readers take them.
    private func write(
        varint value: UInt64, _ operation: ProtobufProgram.Operation, _ place: Int32,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) {
        switch operation {
        case .int32: output.append(integer: Int64(Int32(truncatingIfNeeded: value)))
        case .uint32: output.append(unsigned: UInt64(UInt32(truncatingIfNeeded: value)))
        case .uint64: output.append(unsigned: value)
        case .sint32:
            let low = UInt32(truncatingIfNeeded: value)
            output.append(integer: Int64(Int32(bitPattern: low >> 1) ^ -Int32(bitPattern: low & 1)))
        case .sint64:
            output.append(integer: Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
        case .bool: output.append(bool: value != 0)
        case .enumeration:
            write(enumeration: Int32(truncatingIfNeeded: value), place, program, &output)
        default: output.append(integer: Int64(bitPattern: value))
        }
    }

    /// The name, or the number of a value that has none.
    private func write(
        enumeration number: Int32, _ place: Int32, _ program: ProtobufProgram,
        _ output: inout OutputBuffer
    ) {
        let range = program.enumerations[Int(place)].range
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if program.values[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < range.upperBound, program.values[low].number == number else {
            return output.append(integer: Int64(number))
        }
        program.texts.write(program.values[low].text, to: &output)
    }

    /// The mapping's words for what JSON has no number for.
    private func write(_ value: Double, _ output: inout OutputBuffer) {
        if value.isFinite { return output.append(double: value) }
        write(notFinite: value, &output)
    }

    private func write(_ value: Float, _ output: inout OutputBuffer) {
        if value.isFinite { return output.append(float: value) }
        write(notFinite: Double(value), &output)
    }

    private func write(notFinite value: Double, _ output: inout OutputBuffer) {
        if value.isNaN { return output.append(#""NaN""#) }
        if value < 0 { output.append(#""-Infinity""#) } else { output.append(#""Infinity""#) }
    }

    /// What a value is that is not on the wire, where it must be written nevertheless: in a map's
    /// entry, and in a wrapper.
    func writeDefault(
        _ operation: ProtobufProgram.Operation, _ place: Int32, _ program: ProtobufProgram,
        _ output: inout OutputBuffer
    ) {
        switch operation {
        case .bool: output.append("false")
        case .string, .bytes: output.append(#""""#)
        case .double, .float: output.append("0.0")
        case .enumeration: write(enumeration: 0, place, program, &output)
        default: output.append("0")
        }
    }

    /// The default of a map's value; that of a message is the one without fields.
    mutating func writeDefault(
        _ field: ProtobufProgram.Field, _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        if field.operation.isMessage {
            return writeSized(
                field, UnsafeRawBufferPointer(start: nil, count: 0), program, &output)
        }
        writeDefault(field.operation, field.place, program, &output)
        return true
    }
}
