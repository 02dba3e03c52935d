// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension AvroReading {
    /// Passes over a value. Of what it passes over, only the bounds are checked.
    mutating func skip(_ index: Int32, _ program: AvroProgram) -> Bool {
        steps -= 1
        guard steps >= 0 else { return fail(.tooManySteps) }
        let node = program.nodes[Int(index)]
        switch node.operation {
        case .null: return true
        case .boolean: return cursor.skip(1)
        case .int, .long, .enumeration: return cursor.varint() != nil
        case .float: return cursor.skip(4)
        case .double: return cursor.skip(8)
        case .bytes, .string, .decimal: return sized() != nil
        case .fixed: return cursor.skip(Int(node.first))
        case .uuid: return cursor.skip(16)
        case .sizedDecimal: return cursor.skip(Int(node.other))
        case .union:
            guard let number = choice(of: node, .noSuchBranch) else { return false }
            return skip(program.branches[number], program)
        case .array: return skipBlocks(of: node.first, program, haveKeys: false)
        case .map: return skipBlocks(of: node.first, program, haveKeys: true)
        case .record:
            guard enter() else { return false }
            for index in Int(node.first)..<Int(node.first) + Int(node.count) {
                let field = program.fields[index]
                guard skip(field.node, program) else {
                    path.enclose(inField: program.texts.bytes, field.name.range)
                    return false
                }
            }
            depth -= 1
            return true
        }
    }

    private mutating func skipBlocks(
        of inner: Int32, _ program: AvroProgram, haveKeys: Bool
    ) -> Bool {
        guard enter() else { return false }
        while true {
            guard let block = block() else { return false }
            if block.items == 0 { break }
            if let end = block.end {
                steps -= 1
                guard steps >= 0 else { return fail(.tooManySteps) }
                cursor.rewind(to: end)
                continue
            }
            for _ in 0..<block.items {
                guard !haveKeys || sized() != nil, skip(inner, program) else {
                    path.encloseInAny()
                    return false
                }
            }
        }
        depth -= 1
        return true
    }
}
