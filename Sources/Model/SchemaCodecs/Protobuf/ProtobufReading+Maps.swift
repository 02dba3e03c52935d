// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

extension ProtobufReading {
    mutating func writeEntries(
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
