// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A schema of Avro and what is wanted of its values, as flat tables that are read for each
/// value. A class, so that handing it on retains nothing, and not each table.
final class AvroProgram: Sendable {
    enum Operation: UInt8, Sendable {
        case null, boolean, int, long, float, double, bytes, string, fixed, uuid, decimal
        case sizedDecimal, enumeration, array, map, union, record
    }

    /// A type, together with what is wanted of it. What the numbers mean depends on the operation.
    struct Node: Sendable {
        var operation: Operation
        /// Of fixed: its size. Of arrays and maps: the node of what is in them. Else where the list
        /// of symbols, branches or fields begins.
        var first: Int32 = 0
        /// How many symbols, branches or fields; of decimals the scale; of arrays how many items are
        /// wanted; of maps how many keys, or `allKeys`.
        var count: Int32 = 0
        /// Of maps: where the list of keys begins. Of sized decimals: the size.
        var other: Int32 = 0
    }

    static let allKeys: Int32 = -1

    struct Field: Sendable {
        var node: Int32
        var isWritten: Bool
        /// The comma, the name and the colon.
        var prefix = SchemaTexts.Place()
        var name: SchemaTexts.Place
    }

    let nodes: [Node]
    let fields: [Field]
    let branches: [Int32]
    /// The symbols of enums in quotes, and the keys of maps without.
    let words: [SchemaTexts.Place]
    let texts: SchemaTexts

    /// The tables while they are made.
    private struct Tables {
        var nodes: [Node] = []
        var fields: [Field] = []
        var branches: [Int32] = []
        var words: [SchemaTexts.Place] = []
        var texts = SchemaTexts()
    }

    /// About what the program takes in memory.
    var byteCount: Int {
        nodes.count * 16 + fields.count * 28 + branches.count * 4 + words.count * 8
            + texts.bytes.count
    }

    init(_ schema: AvroSchema, _ projection: Projection = .whole) throws(UnusableSchema) {
        var tables = Tables()
        var compiler = Compiler(schema: schema, projection: projection)
        let root = compiler.projection.isWhole(.root) ? Projection.Place.all : .root
        _ = compiler.node(Compiler.Source(type: schema.root, place: root), &tables)
        // A loop and not a recursion: types may refer to each other as deep as they are many.
        while let (source, node) = compiler.open.popLast() {
            tables.nodes[node] = compiler.filled(source, &tables)
            guard tables.nodes.count + tables.fields.count <= SchemaLimits.partsMax * 4 else {
                throw UnusableSchema("the schema has too many parts for so many pointers")
            }
        }
        nodes = tables.nodes
        fields = tables.fields
        branches = tables.branches
        words = tables.words
        texts = tables.texts
    }

    /// What is only needed while the tables are made.
    private struct Compiler {
        struct Source: Hashable {
            let type: Int
            let place: Projection.Place
        }

        let schema: AvroSchema
        var projection: Projection
        var open: [(source: Source, node: Int)] = []
        private var known: [Source: Int] = [:]

        init(schema: AvroSchema, projection: Projection) {
            self.schema = schema
            self.projection = projection
        }

        /// The node of a type, which is filled in later.
        mutating func node(_ source: Source, _ program: inout Tables) -> Int32 {
            if let node = known[source] { return Int32(node) }
            let node = program.nodes.count
            program.nodes.append(Node(operation: .null))
            known[source] = node
            open.append((source, node))
            return Int32(node)
        }

        mutating func filled(_ source: Source, _ program: inout Tables) -> Node {
            switch schema.types[source.type] {
            case .null, .undefined: return Node(operation: .null)
            case .boolean: return Node(operation: .boolean)
            case .int: return Node(operation: .int)
            case .long: return Node(operation: .long)
            case .float: return Node(operation: .float)
            case .double: return Node(operation: .double)
            case .bytes: return Node(operation: .bytes)
            case .string: return Node(operation: .string)
            case .uuid: return Node(operation: .uuid)
            case .fixed(let size): return Node(operation: .fixed, first: Int32(size))
            case .decimal(nil, let scale): return Node(operation: .decimal, count: Int32(scale))
            case .decimal(let size?, let scale):
                return Node(operation: .sizedDecimal, count: Int32(scale), other: Int32(size))
            case .enumeration(let symbols):
                let first = program.words.count
                for symbol in symbols { program.words.append(program.texts.add(quoted: symbol)) }
                return list(.enumeration, first, symbols.count)
            case .union(let types):
                let first = program.branches.count
                for type in types {
                    let branch = node(Source(type: type, place: source.place), &program)
                    program.branches.append(branch)
                }
                return list(.union, first, types.count)
            case .array(let items): return array(items, source.place, &program)
            case .map(let values): return map(values, source.place, &program)
            case .record(let fields): return record(fields, source.place, &program)
            }
        }

        private func list(_ operation: Operation, _ first: Int, _ count: Int) -> Node {
            Node(operation: operation, first: Int32(first), count: Int32(count))
        }

        private mutating func array(
            _ items: Int, _ place: Projection.Place, _ program: inout Tables
        ) -> Node {
            let wanted = projection.itemsMax(of: place)
            let inner = Source(type: items, place: projection.anyChild(of: place))
            return Node(
                operation: .array, first: node(inner, &program),
                count: Int32(clamping: wanted ?? Int(Int32.max)))
        }

        private mutating func map(
            _ values: Int, _ place: Projection.Place, _ program: inout Tables
        ) -> Node {
            let first = program.words.count
            let keys = projection.keys(of: place)
            for key in keys ?? [] { program.words.append(program.texts.add(key)) }
            let inner = Source(type: values, place: projection.anyChild(of: place))
            return Node(
                operation: .map, first: node(inner, &program),
                count: keys.map { Int32($0.count) } ?? AvroProgram.allKeys, other: Int32(first))
        }

        private mutating func record(
            _ list: [AvroSchema.Field], _ place: Projection.Place, _ program: inout Tables
        ) -> Node {
            let first = program.fields.count
            var isFirst = true
            for field in list {
                let wanted = projection.field(field.name, of: place)
                var entry = Field(
                    node: node(Source(type: field.type, place: wanted ?? .all), &program),
                    isWritten: wanted != nil, name: program.texts.add(field.name))
                if entry.isWritten {
                    entry.prefix = program.texts.add(member: field.name, isFirst: isFirst)
                    isFirst = false
                }
                program.fields.append(entry)
            }
            return self.list(.record, first, list.count)
        }
    }
}
