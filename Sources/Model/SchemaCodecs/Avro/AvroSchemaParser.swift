// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// Reads schemas of Avro from their JSON.
struct AvroSchemaParser {
    private var schema = AvroSchema()
    /// The places of the named types, by full name.
    private var names: [String: Int] = [:]
    /// Types, fields, branches and symbols so far.
    private var parts = 0

    /// - Parameter references: the texts of schemas whose named types `text` may mention, those
    ///   that others mention first.
    static func schema(
        _ text: [UInt8], references: [[UInt8]] = []
    ) throws(UnusableSchema) -> AvroSchema {
        var json = JSONParser(
            bytesMax: SchemaLimits.textBytesMax, depthMax: SchemaLimits.textDepthMax)
        var parser = AvroSchemaParser()
        for reference in references { _ = try parser.type(reference, &json) }
        parser.schema.root = try parser.type(text, &json)
        return parser.schema
    }

    private mutating func type(
        _ text: [UInt8], _ json: inout JSONParser
    ) throws(UnusableSchema) -> Int {
        // A name alone is a schema as well, with and without quotes.
        if let name = Self.bareName(text) { return try type(named: name, namespace: "") }
        let parsed = text.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try json.parse(bytes) }
        }
        switch parsed {
        case .success(let value): return try type(value, namespace: "")
        case .failure(let error):
            throw UnusableSchema("the Avro schema is no JSON: \(error.message)")
        }
    }

    private static func bareName(_ text: [UInt8]) -> String? {
        guard let first = text.first, (1...SchemaLimits.nameBytesMax).contains(text.count),
            first != UInt8(ascii: "{"), first != UInt8(ascii: "["), first != UInt8(ascii: "\"")
        else { return nil }
        let isName = text.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        return isName ? String(decoding: text, as: UTF8.self) : nil
    }

    // MARK: Types

    /// Recursion goes no deeper than the JSON nests.
    private mutating func type(
        _ value: JSONValue, namespace: String
    ) throws(UnusableSchema) -> Int {
        if let name = value.string {
            return try type(named: try Self.name(name), namespace: namespace)
        }
        if let branches = value.array { return try union(branches, namespace: namespace) }
        guard let object = value.object else {
            throw UnusableSchema("an Avro type is a name, a union or an object")
        }
        guard let kind = object["type"] else {
            throw UnusableSchema("an Avro type has no member type")
        }
        guard let text = kind.string else { return try type(kind, namespace: namespace) }
        switch try Self.name(text) {
        case "record", "error": return try record(object, namespace: namespace)
        case "enum": return try enumeration(object, namespace: namespace)
        case "fixed": return try fixed(object, namespace: namespace)
        case "array":
            guard let items = object["items"] else { throw UnusableSchema("an array has no items") }
            let type = try type(items, namespace: namespace)
            return try add(.array(type))
        case "map":
            guard let values = object["values"] else { throw UnusableSchema("a map has no values") }
            let type = try type(values, namespace: namespace)
            return try add(.map(type))
        case "bytes":
            if let scale = Self.scale(of: object) {
                return try add(.decimal(size: nil, scale: scale))
            }
            return try add(.bytes)
        case let name: return try type(named: name, namespace: namespace)
        }
    }

    private mutating func type(
        named name: String, namespace: String
    ) throws(UnusableSchema) -> Int {
        if let primitive = Self.primitives[name] { return try add(primitive) }
        if !name.contains("."), !namespace.isEmpty, let place = names["\(namespace).\(name)"] {
            return place
        }
        guard let place = names[name] else {
            throw UnusableSchema("the type \(Self.shown(name)) is not defined")
        }
        return place
    }

    private static let primitives: [String: AvroSchema.Kind] = [
        "null": .null, "boolean": .boolean, "int": .int, "long": .long, "float": .float,
        "double": .double, "bytes": .bytes, "string": .string,
    ]

    private mutating func union(
        _ branches: JSONArray, namespace: String
    ) throws(UnusableSchema) -> Int {
        var types: [Int] = []
        for branch in branches {
            let type = try type(branch, namespace: namespace)
            if case .union = schema.types[type] {
                throw UnusableSchema("a union is directly in a union")
            }
            types.append(type)
            try count(1)
        }
        return try add(.union(types))
    }

    private mutating func record(
        _ object: JSONObject, namespace: String
    ) throws(UnusableSchema) -> Int {
        let (place, name, inner) = try define(object, namespace: namespace)
        guard let list = object["fields"]?.array else {
            throw UnusableSchema("the record \(Self.shown(name)) has no fields")
        }
        var fields: [AvroSchema.Field] = []
        var seen: Set<[UInt8]> = []
        for field in list {
            guard let member = field.object, let fieldName = member["name"]?.string,
                let type = member["type"]
            else { throw UnusableSchema("a field of \(Self.shown(name)) has no name or no type") }
            let text = Array(try Self.name(fieldName).utf8)
            guard seen.insert(text).inserted else {
                throw UnusableSchema("the record \(Self.shown(name)) has a field twice")
            }
            try count(1)
            fields.append(
                AvroSchema.Field(name: text, type: try self.type(type, namespace: inner)))
        }
        schema.types[place] = .record(fields)
        return place
    }

    private mutating func enumeration(
        _ object: JSONObject, namespace: String
    ) throws(UnusableSchema) -> Int {
        let (place, name, _) = try define(object, namespace: namespace)
        guard let list = object["symbols"]?.array, !list.isEmpty else {
            throw UnusableSchema("the enum \(Self.shown(name)) has no symbols")
        }
        var symbols: [[UInt8]] = []
        for symbol in list {
            guard let text = symbol.string else {
                throw UnusableSchema("a symbol of \(Self.shown(name)) is no string")
            }
            symbols.append(Array(try Self.name(text).utf8))
            try count(1)
        }
        schema.types[place] = .enumeration(symbols: symbols)
        return place
    }

    private mutating func fixed(
        _ object: JSONObject, namespace: String
    ) throws(UnusableSchema) -> Int {
        let (place, name, _) = try define(object, namespace: namespace)
        // A record of Kafka is at most 2 GiB.
        guard let size = object["size"]?.integer, (0...Int64(Int32.max)).contains(size) else {
            throw UnusableSchema("the fixed \(Self.shown(name)) has no size")
        }
        if let scale = Self.scale(of: object), size > 0 {
            schema.types[place] = .decimal(size: Int(size), scale: scale)
        } else if size == 16, object["logicalType"]?.string?.equals("uuid") ?? false {
            schema.types[place] = .uuid
        } else {
            schema.types[place] = .fixed(size: Int(size))
        }
        return place
    }

    /// The scale of a decimal; nil if it is none, or none that the specification allows: such a type
    /// is read as if it had no logical type.
    private static func scale(of object: JSONObject) -> Int? {
        guard object["logicalType"]?.string?.equals("decimal") ?? false,
            let precision = object["precision"]?.integer, (1...1000).contains(precision)
        else { return nil }
        guard let member = object["scale"] else { return 0 }
        guard let scale = member.integer, (0...precision).contains(scale) else { return nil }
        return Int(scale)
    }

    // MARK: Names

    /// Enters a named type, before what is in it, which may mention it.
    private mutating func define(
        _ object: JSONObject, namespace: String
    ) throws(UnusableSchema) -> (place: Int, name: String, namespace: String) {
        guard let text = object["name"]?.string else {
            throw UnusableSchema("a named Avro type has no name")
        }
        var name = try Self.name(text)
        var inner = namespace
        if let dot = name.lastIndex(of: ".") {
            inner = String(name[..<dot])
        } else {
            if let own = object["namespace"]?.string { inner = try Self.text(own) }
            if !inner.isEmpty { name = "\(inner).\(name)" }
        }
        guard name.utf8.count <= SchemaLimits.nameBytesMax else {
            throw UnusableSchema("a name has more than \(SchemaLimits.nameBytesMax) bytes")
        }
        guard Self.primitives[name] == nil else {
            throw UnusableSchema("\(name) is defined, and is a type of Avro's own")
        }
        let place = try add(.undefined)
        guard names.updateValue(place, forKey: name) == nil else {
            throw UnusableSchema("the type \(Self.shown(name)) is defined twice")
        }
        return (place, name, inner)
    }

    private static func name(_ bytes: UnsafeRawBufferPointer) throws(UnusableSchema) -> String {
        guard !bytes.isEmpty else { throw UnusableSchema("a name is empty") }
        return try text(bytes)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) throws(UnusableSchema) -> String {
        guard bytes.count <= SchemaLimits.nameBytesMax else {
            throw UnusableSchema("a name has more than \(SchemaLimits.nameBytesMax) bytes")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func shown(_ name: String) -> String { String(name.prefix(200)).printable }

    private mutating func add(_ kind: AvroSchema.Kind) throws(UnusableSchema) -> Int {
        try count(1)
        schema.types.append(kind)
        return schema.types.count - 1
    }

    private mutating func count(_ more: Int) throws(UnusableSchema) {
        parts += more
        guard parts <= SchemaLimits.partsMax else {
            throw UnusableSchema("the schema has more than \(SchemaLimits.partsMax) parts")
        }
    }
}
