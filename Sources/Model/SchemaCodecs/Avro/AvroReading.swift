// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

/// Reads one value of Avro and writes it as JSON.
///
/// - A union's value is written as such, without the branch's name.
/// - Bytes and fixed are base64; decimals are strings of decimal digits; a UUID of 16 bytes is written in
///   its usual form; dates, times and timestamps are the integers that they are.
/// - NaN and the infinities, which JSON lacks, are `null`.
struct AvroReading {
    var cursor: ByteCursor
    var steps: Int
    var depth = 0
    var fault: ValueFault?
    var path = ValuePath()

    /// Reads all of `bytes`.
    /// - Returns: what is wrong, as a sentence; nil if `output` has the JSON.
    static func write(
        _ bytes: UnsafeRawBufferPointer, _ program: AvroProgram,
        to output: inout OutputBuffer
    ) -> String? {
        var reading = AvroReading(bytes)
        if reading.write(0, program, &output) {
            if output.hasOverflowed { return ValueFault.tooLarge.text }
            return reading.cursor.isAtEnd ? nil : ValueFault.bytesLeft.text
        }
        let fault = reading.fault ?? reading.cursor.fault
        return "\(fault.text), at \(reading.path.text)"
    }

    private init(_ bytes: UnsafeRawBufferPointer) {
        cursor = ByteCursor(bytes)
        steps = SchemaLimits.steps(bytes: bytes.count)
    }

    mutating func fail(_ fault: ValueFault) -> Bool {
        self.fault = fault
        return false
    }

    // MARK: Writing

    private mutating func write(
        _ index: Int32, _ program: AvroProgram, _ output: inout OutputBuffer
    ) -> Bool {
        steps -= 1
        guard steps >= 0 else { return fail(.tooManySteps) }
        let node = program.nodes[Int(index)]
        switch node.operation {
        case .null: output.append("null")
        case .boolean:
            guard let byte = cursor.byte() else { return false }
            guard byte <= 1 else { return fail(.noBoolean) }
            output.append(bool: byte == 1)
        case .int:
            guard let value = cursor.zigzag() else { return false }
            guard Int32(exactly: value) != nil else { return fail(.outOfRange) }
            output.append(integer: value)
        case .long:
            guard let value = cursor.zigzag() else { return false }
            output.append(integer: value)
        case .float:
            guard let bits = cursor.fixed32() else { return false }
            output.append(float: Float(bitPattern: bits))
        case .double:
            guard let bits = cursor.fixed64() else { return false }
            output.append(double: Double(bitPattern: bits))
        case .bytes:
            guard let bytes = sized() else { return false }
            output.append(base64: bytes)
        case .string:
            guard let text = sized() else { return false }
            guard output.append(string: text) else { return fail(.notUTF8) }
        case .fixed:
            guard let bytes = cursor.take(Int(node.first)) else { return false }
            output.append(base64: bytes)
        case .uuid:
            guard let bytes = cursor.take(16) else { return false }
            output.append(uuid: bytes)
        case .decimal:
            guard let bytes = sized() else { return false }
            return output.append(decimal: bytes, scale: Int(node.count)) || fail(.longDecimal)
        case .sizedDecimal:
            guard let bytes = cursor.take(Int(node.other)) else { return false }
            return output.append(decimal: bytes, scale: Int(node.count)) || fail(.longDecimal)
        case .enumeration:
            guard let number = choice(of: node, .noSuchSymbol) else { return false }
            program.texts.write(program.words[number], to: &output)
        case .union:
            guard let number = choice(of: node, .noSuchBranch) else { return false }
            return write(program.branches[number], program, &output)
        case .array: return writeArray(node, program, &output)
        case .map: return writeMap(node, program, &output)
        case .record: return writeRecord(node, program, &output)
        }
        return true
    }

    /// Bytes after their length.
    mutating func sized() -> UnsafeRawBufferPointer? {
        guard let length = cursor.zigzag() else { return nil }
        guard length >= 0 else {
            fault = .negativeLength
            return nil
        }
        return cursor.take(UInt64(length))
    }

    /// The place of the symbol or the branch that a value names.
    mutating func choice(of node: AvroProgram.Node, _ fault: ValueFault) -> Int? {
        guard let number = cursor.zigzag() else { return nil }
        guard (0..<Int64(node.count)).contains(number) else {
            self.fault = fault
            return nil
        }
        return Int(node.first) + Int(number)
    }

    private mutating func writeRecord(
        _ node: AvroProgram.Node, _ program: AvroProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: "{"))
        for index in Int(node.first)..<Int(node.first) + Int(node.count) {
            let field = program.fields[index]
            let isRead: Bool
            if field.isWritten {
                program.texts.write(field.prefix, to: &output)
                isRead = write(field.node, program, &output)
            } else {
                isRead = skip(field.node, program)
            }
            guard isRead else {
                path.enclose(inField: program.texts.bytes, field.name.range)
                return false
            }
        }
        output.append(UInt8(ascii: "}"))
        depth -= 1
        return true
    }

    mutating func enter() -> Bool {
        depth += 1
        return depth <= SchemaLimits.depthMax || fail(.tooDeep)
    }

    /// The beginning of a block of an array or a map.
    struct Block {
        var items: UInt64
        /// Where the block ends, if it says so.
        var end: Int?
    }

    mutating func block() -> Block? {
        guard let count = cursor.zigzag() else { return nil }
        guard count < 0 else { return Block(items: UInt64(count)) }
        guard let size = cursor.zigzag() else { return nil }
        guard size >= 0 else {
            fault = .negativeLength
            return nil
        }
        // Not `endsTooEarly` yet: whatever is beyond the end is found out when it is read.
        guard size <= Int64(cursor.remaining) else { return nil }
        return Block(items: count.magnitude, end: cursor.position + Int(size))
    }

    private mutating func writeArray(
        _ node: AvroProgram.Node, _ program: AvroProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: "["))
        var index = 0
        while true {
            guard let block = block() else { return false }
            if block.items == 0 { break }
            var left = block.items
            while left > 0 {
                guard !output.hasOverflowed else { return fail(.tooLarge) }
                let isRead: Bool
                if index < Int(node.count) {
                    if index > 0 { output.append(UInt8(ascii: ",")) }
                    isRead = write(node.first, program, &output)
                } else if let end = block.end {
                    // The rest of the block is not wanted.
                    cursor.rewind(to: end)
                    break
                } else {
                    isRead = skip(node.first, program)
                }
                guard isRead else {
                    path.enclose(inItem: index)
                    return false
                }
                index += 1
                left -= 1
            }
            guard block.end.map({ $0 == cursor.position }) ?? true else { return fail(.blockSize) }
        }
        output.append(UInt8(ascii: "]"))
        depth -= 1
        return true
    }

    private mutating func writeMap(
        _ node: AvroProgram.Node, _ program: AvroProgram, _ output: inout OutputBuffer
    ) -> Bool {
        guard enter() else { return false }
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        while true {
            guard let block = block() else { return false }
            if block.items == 0 { break }
            var left = block.items
            while left > 0 {
                guard !output.hasOverflowed else { return fail(.tooLarge) }
                guard writeEntry(node, program, &output, &isFirst) else {
                    path.encloseInAny()
                    return false
                }
                left -= 1
            }
            guard block.end.map({ $0 == cursor.position }) ?? true else { return fail(.blockSize) }
        }
        output.append(UInt8(ascii: "}"))
        depth -= 1
        return true
    }

    private mutating func writeEntry(
        _ node: AvroProgram.Node, _ program: AvroProgram, _ output: inout OutputBuffer,
        _ isFirst: inout Bool
    ) -> Bool {
        guard let key = sized() else { return false }
        guard isWanted(key, node, program) else { return skip(node.first, program) }
        if !isFirst { output.append(UInt8(ascii: ",")) }
        isFirst = false
        guard output.append(string: key) else { return fail(.notUTF8) }
        output.append(UInt8(ascii: ":"))
        return write(node.first, program, &output)
    }

    private func isWanted(
        _ key: UnsafeRawBufferPointer, _ node: AvroProgram.Node, _ program: AvroProgram
    ) -> Bool {
        guard node.count != AvroProgram.allKeys else { return true }
        for index in Int(node.other)..<Int(node.other) + Int(node.count)
        where program.texts.holds(key, at: program.words[index]) {
            return true
        }
        return false
    }
}
