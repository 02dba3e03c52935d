// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

/// Reads one message of Protobuf and writes it by the JSON mapping of proto3, with these differences:
///
/// - 64-bit integers are JSON integers, not strings: subjects and conditions compare them, and the
///   parser that reads this JSON keeps all 64 bits.
/// - `google.protobuf.Any` is written as the two fields that it has, since its type is not known.
///
/// What is not on the wire is absent, defaults included, as the mapping has it. Fields that the schema
/// does not have, and groups, are passed over.
struct ProtobufReading {
    /// Where a field is in a message.
    struct Occurrence {
        /// The field's place in the program.
        var field: Int32
        var count: Int32
        /// Where the tags of the first and the last one begin, in bytes from the message's start.
        var first: Int
        var last: Int
    }

    var steps: Int
    var depth = 0
    var fault: ValueFault?
    private(set) var path = FieldPath()
    /// The fields found in the messages that are being read, innermost last.
    private var occurrences: [Occurrence]

    /// Reads all of `bytes`.
    /// - Parameter scratch: memory that is used again and again.
    /// - Returns: what is wrong, as a sentence; nil if `output` has the JSON.
    static func write(
        _ bytes: UnsafeRawBufferPointer, _ program: ProtobufProgram,
        to output: inout OutputBuffer, scratch: inout [Occurrence]
    ) -> String? {
        var reading = ProtobufReading(
            steps: SchemaLimits.steps(bytes: bytes.count), occurrences: scratch)
        scratch = []
        defer {
            reading.occurrences.removeAll(keepingCapacity: true)
            scratch = reading.occurrences
        }
        guard reading.writeMessage(0, bytes, program, &output) else {
            return "\(reading.fault?.text ?? "it cannot be read"), at \(reading.path.text)"
        }
        return output.hasOverflowed ? ValueFault.tooLarge.text : nil
    }

    private init(steps: Int, occurrences: [Occurrence]) {
        self.steps = steps
        self.occurrences = occurrences
    }

    mutating func fail(_ fault: ValueFault) -> Bool {
        self.fault = fault
        return false
    }

    mutating func step() -> Bool {
        steps -= 1
        return steps >= 0 || fail(.tooManySteps)
    }

    mutating func enter() -> Bool {
        depth += 1
        return depth <= SchemaLimits.depthMax || fail(.tooDeep)
    }

    // MARK: The wire

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

    // MARK: Messages

    mutating func writeMessage(
        _ message: Int32, _ bytes: UnsafeRawBufferPointer, _ program: ProtobufProgram,
        _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        let base = occurrences.count
        guard find(program.messages[Int(message)], bytes, program, base) else { return false }
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        let end = occurrences.count
        for index in base..<end {
            let found = occurrences[index]
            let field = program.fields[Int(found.field)]
            guard found.count > 0, field.isWritten else { continue }
            guard !output.hasOverflowed else { return fail(.tooLarge) }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            program.texts.write(field.prefix, to: &output)
            guard write(field, found, bytes, program, &output) else {
                path.enclose(inField: program.texts.bytes, field.name.range)
                return false
            }
        }
        output.append(UInt8(ascii: "}"))
        occurrences.removeLast(occurrences.count - base)
        depth -= 1
        return true
    }

    /// Finds out which fields a message has, and where: they may come in any order, and more than once.
    private mutating func find(
        _ fields: ProtobufProgram.Part, _ bytes: UnsafeRawBufferPointer, _ program: ProtobufProgram,
        _ base: Int
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        var guess = fields.range.lowerBound
        while !cursor.isAtEnd {
            let start = cursor.position
            guard let tag = tag(&cursor), skip(tag, &cursor) else { return false }
            guard let index = Self.field(tag.number, fields, program, &guess),
                program.fields[index].accepts(tag.wire)
            else { continue }
            guard note(Int32(index), at: start, program, base) else { return false }
        }
        return true
    }

    /// - Parameter guess: where the field is probably: at or after the one before it.
    private static func field(
        _ number: UInt32, _ fields: ProtobufProgram.Part, _ program: ProtobufProgram,
        _ guess: inout Int
    ) -> Int? {
        var (low, high) = (fields.range.lowerBound, fields.range.upperBound)
        for likely in guess..<min(guess + 2, high) where program.fields[likely].number == number {
            guess = likely
            return likely
        }
        while low < high {
            let middle = (low + high) / 2
            if program.fields[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < fields.range.upperBound, program.fields[low].number == number else {
            return nil
        }
        guess = low
        return low
    }

    private mutating func note(
        _ field: Int32, at start: Int, _ program: ProtobufProgram, _ base: Int
    ) -> Bool {
        let oneof = program.fields[Int(field)].oneof
        // Most often it is the one before.
        var index = occurrences.count - 1
        var found: Int?
        while index >= base {
            if occurrences[index].field == field {
                found = index
                if oneof == ProtobufProgram.noOneof { break }
            } else if oneof != ProtobufProgram.noOneof,
                program.fields[Int(occurrences[index].field)].oneof == oneof
            {
                // Of a oneof the last field counts.
                occurrences[index].count = 0
            }
            index -= 1
            guard step() else { return false }
        }
        guard let found else {
            occurrences.append(Occurrence(field: field, count: 1, first: start, last: start))
            return true
        }
        if occurrences[found].count == 0 { occurrences[found].first = start }
        occurrences[found].last = start
        // More than the bytes of a record cannot be counted.
        occurrences[found].count += 1
        return true
    }

    // MARK: Fields

    private mutating func write(
        _ field: ProtobufProgram.Field, _ found: Occurrence, _ bytes: UnsafeRawBufferPointer,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        var cursor = ByteCursor(bytes)
        switch field.cardinality {
        case .single:
            if found.count > 1, field.operation.isMessage {
                // Messages that come in parts are what their bytes mean one after the other.
                return merged(field.number, found, bytes) { reading, whole in
                    reading.writeSized(field, whole, program, &output)
                }
            }
            cursor.rewind(to: found.last)
            guard let tag = tag(&cursor) else { return false }
            // A field that is not repeated may still come as if it were packed.
            return writeItem(field, tag, &cursor, program, &output)
        case .repeated: return writeItems(field, found, &cursor, program, &output)
        case .map: return writeEntries(field, found, &cursor, program, &output)
        }
    }

    mutating func merged(
        _ number: UInt32, _ found: Occurrence, _ bytes: UnsafeRawBufferPointer,
        _ write: (inout ProtobufReading, UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        var whole: [UInt8] = []
        var cursor = ByteCursor(bytes)
        cursor.rewind(to: found.first)
        while cursor.position <= found.last {
            guard let tag = tag(&cursor) else { return false }
            guard tag == Tag(number: number, wire: Tag.sized) else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard let part = sized(&cursor) else { return false }
            whole.append(contentsOf: part)
        }
        return whole.withUnsafeBytes { write(&self, $0) }
    }

    private mutating func writeItems(
        _ field: ProtobufProgram.Field, _ found: Occurrence, _ cursor: inout ByteCursor,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: "["))
        var index = 0
        cursor.rewind(to: found.first)
        while cursor.position <= found.last, index < Int(field.count) {
            guard let tag = tag(&cursor) else { return false }
            guard tag.number == field.number, field.accepts(tag.wire) else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard !output.hasOverflowed else { return fail(.tooLarge) }
            let isWritten: Bool
            if tag.wire == Tag.sized, field.operation.packedWire != nil {
                isWritten = writePacked(field, &cursor, program, &output, &index)
            } else {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                isWritten = writeItem(field, tag, &cursor, program, &output)
                if isWritten { index += 1 }
            }
            guard isWritten else {
                path.enclose(inItem: index)
                return false
            }
        }
        output.append(UInt8(ascii: "]"))
        depth -= 1
        return true
    }

    private mutating func writePacked(
        _ field: ProtobufProgram.Field, _ cursor: inout ByteCursor, _ program: ProtobufProgram,
        _ output: inout OutputBuffer, _ index: inout Int
    ) -> Bool {
        guard let packed = sized(&cursor) else { return false }
        var items = ByteCursor(packed)
        while !items.isAtEnd, index < Int(field.count) {
            guard !output.hasOverflowed else { return fail(.tooLarge) }
            if index > 0 { output.append(UInt8(ascii: ",")) }
            guard writeScalar(field.operation, field.place, &items, program, &output) else {
                return false
            }
            index += 1
        }
        return true
    }

    /// Writes the value after a tag.
    private mutating func writeItem(
        _ field: ProtobufProgram.Field, _ tag: Tag, _ cursor: inout ByteCursor,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard field.operation.isMessage else {
            return writeScalar(field.operation, field.place, &cursor, program, &output)
        }
        guard let bytes = sized(&cursor) else { return false }
        return writeSized(field, bytes, program, &output)
    }

    /// Writes a message of any kind.
    mutating func writeSized(
        _ field: ProtobufProgram.Field, _ bytes: UnsafeRawBufferPointer, _ program: ProtobufProgram,
        _ output: inout OutputBuffer
    ) -> Bool {
        switch field.operation {
        case .timestamp: writeTimestamp(bytes, &output)
        case .duration: writeDuration(bytes, &output)
        case .wrapper: writeWrapper(field, bytes, program, &output)
        case .structure: writeStructure(bytes, &output)
        case .value: writeValue(bytes, &output)
        case .list: writeList(bytes, &output)
        case .fieldMask: writeFieldMask(bytes, &output)
        default: writeMessage(field.place, bytes, program, &output)
        }
    }

    // MARK: Maps

    private mutating func writeEntries(
        _ field: ProtobufProgram.Field, _ found: Occurrence, _ cursor: inout ByteCursor,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        cursor.rewind(to: found.first)
        while cursor.position <= found.last {
            guard let tag = tag(&cursor) else { return false }
            guard tag == Tag(number: field.number, wire: Tag.sized) else {
                guard skip(tag, &cursor) else { return false }
                continue
            }
            guard !output.hasOverflowed else { return fail(.tooLarge) }
            guard let entry = sized(&cursor),
                writeEntry(field, entry, program, &output, &isFirst)
            else {
                path.encloseInAny()
                return false
            }
        }
        output.append(UInt8(ascii: "}"))
        depth -= 1
        return true
    }

    private mutating func writeEntry(
        _ field: ProtobufProgram.Field, _ entry: UnsafeRawBufferPointer,
        _ program: ProtobufProgram, _ output: inout OutputBuffer, _ isFirst: inout Bool
    ) -> Bool {
        var cursor = ByteCursor(entry)
        var key: Int?
        var value = Occurrence(field: 0, count: 0, first: 0, last: 0)
        while !cursor.isAtEnd {
            let start = cursor.position
            guard let tag = tag(&cursor), skip(tag, &cursor) else { return false }
            if tag == Tag(number: 1, wire: field.key.wire) {
                key = start
            } else if tag == Tag(number: 2, wire: field.operation.wire) {
                if value.count == 0 { value.first = start }
                value.last = start
                value.count += 1
            }
        }
        let mark = output.count
        if !isFirst { output.append(UInt8(ascii: ",")) }
        guard writeKey(field, key, ByteCursor(entry), program, &output) else { return false }
        guard isWanted(field, after: isFirst ? mark : mark + 1, program, output) else {
            output.truncate(to: mark)
            return true
        }
        isFirst = false
        output.append(UInt8(ascii: ":"))
        guard value.count > 0 else { return writeDefault(field, program, &output) }
        var single = field
        single.cardinality = .single
        single.number = 2
        return write(single, value, entry, program, &output)
    }

    private mutating func writeKey(
        _ field: ProtobufProgram.Field, _ position: Int?, _ start: ByteCursor,
        _ program: ProtobufProgram, _ output: inout OutputBuffer
    ) -> Bool {
        let isQuoted = field.key == .string
        if !isQuoted { output.append(UInt8(ascii: "\"")) }
        if let position {
            var cursor = start
            cursor.rewind(to: position)
            guard tag(&cursor) != nil,
                writeScalar(field.key, 0, &cursor, program, &output)
            else { return false }
        } else {
            writeDefault(field.key, 0, program, &output)
        }
        if !isQuoted { output.append(UInt8(ascii: "\"")) }
        return true
    }

    /// Whether the key that is the end of the output, in quotes, is one of those that are wanted.
    private func isWanted(
        _ field: ProtobufProgram.Field, after start: Int, _ program: ProtobufProgram,
        _ output: borrowing OutputBuffer
    ) -> Bool {
        guard field.count != ProtobufProgram.allKeys else { return true }
        guard output.count >= start + 2 else { return true }
        let key = UnsafeRawBufferPointer(rebasing: output.bytes[start + 1..<output.count - 1])
        for index in Int(field.keys)..<Int(field.keys) + Int(field.count)
        where program.texts.holds(key, at: program.words[index]) {
            return true
        }
        return false
    }
}
