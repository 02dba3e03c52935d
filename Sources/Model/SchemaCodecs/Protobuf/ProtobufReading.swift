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
    var path = ValuePath()
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
        var highest: Int32 = -1
        while !cursor.isAtEnd {
            let start = cursor.position
            guard let tag = tag(&cursor), skip(tag, &cursor) else { return false }
            guard let index = Self.field(tag.number, fields, program, &guess),
                program.fields[index].accepts(tag.wire)
            else { continue }
            guard note(Int32(index), at: start, program, base, &highest) else { return false }
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

    /// - Parameter highest: the last of the fields found so far, in the order of their numbers, which is
    ///   the order in which they are usually written: what is beyond it needs no search.
    private mutating func note(
        _ field: Int32, at start: Int, _ program: ProtobufProgram, _ base: Int,
        _ highest: inout Int32
    ) -> Bool {
        let oneof = program.fields[Int(field)].oneof
        if oneof != ProtobufProgram.noOneof {
            guard displace(oneof, by: field, program, base) else { return false }
        }
        guard field <= highest else {
            highest = field
            occurrences.append(Occurrence(field: field, count: 1, first: start, last: start))
            return true
        }
        // Most often it is the one before.
        var index = occurrences.count - 1
        while index >= base, occurrences[index].field != field { index -= 1 }
        guard charge(searched: occurrences.count - 1 - index) else { return false }
        guard index >= base else {
            occurrences.append(Occurrence(field: field, count: 1, first: start, last: start))
            return true
        }
        if occurrences[index].count == 0 { occurrences[index].first = start }
        occurrences[index].last = start
        // More than the bytes of a record cannot be counted.
        occurrences[index].count += 1
        return true
    }

    /// Of a oneof the last field counts.
    private mutating func displace(
        _ oneof: Int32, by field: Int32, _ program: ProtobufProgram, _ base: Int
    ) -> Bool {
        for index in base..<occurrences.count where occurrences[index].field != field {
            if program.fields[Int(occurrences[index].field)].oneof == oneof {
                occurrences[index].count = 0
            }
        }
        return charge(searched: occurrences.count - base)
    }

    /// A look at an entry costs a small part of a step.
    private mutating func charge(searched entries: Int) -> Bool {
        steps -= entries / 16
        return steps >= 0 || fail(.tooManySteps)
    }

    // MARK: Fields

    mutating func write(
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
        case .decimal: writeDecimal(bytes, &output)
        case .wrapper: writeWrapper(field, bytes, program, &output)
        case .structure: writeStructure(bytes, &output)
        case .value: writeValue(bytes, &output)
        case .list: writeList(bytes, &output)
        case .fieldMask: writeFieldMask(bytes, &output)
        default: writeMessage(field.place, bytes, program, &output)
        }
    }
}
