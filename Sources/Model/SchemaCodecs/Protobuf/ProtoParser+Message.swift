// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension ProtoParser {
    /// As deep as protoc lets messages be defined in messages.
    private static let depthMax = 32

    /// Reads a message after its keyword.
    /// - Returns: its place.
    mutating func message(
        _ scanner: inout ProtoScanner, in scope: String, depth: Int
    ) throws(UnusableSchema) -> Int {
        guard depth <= Self.depthMax else {
            throw scanner.problem("nests messages deeper than \(Self.depthMax)")
        }
        let name = Self.name(try scanner.word("the message's name"), in: scope)
        let place = schema.messages.count
        try define(.message(place), name, scanner)
        schema.messages.append(ProtobufSchema.Message(fullName: name))
        try scanner.expect(.symbol("{"), "{ after the message's name")
        var oneofs = 0
        while try !scanner.take(.symbol("}")) {
            try member(of: place, &scanner, depth: depth, &oneofs)
        }
        try checkNumbers(of: place, scanner)
        return place
    }

    private mutating func member(
        of message: Int, _ scanner: inout ProtoScanner, depth: Int, _ oneofs: inout Int
    ) throws(UnusableSchema) {
        if try scanner.take(.symbol(";")) { return }
        let name = schema.messages[message].fullName
        var word = try scanner.word("a field of \(name)")
        if Self.isVisibility(word, before: scanner.next) {
            word = try scanner.word("a field of \(name)")
        }
        switch word {
        case "message":
            schema.messages[message].nested.append(
                try self.message(&scanner, in: name, depth: depth + 1))
        case "enum": try enumeration(&scanner, in: name)
        case "oneof":
            _ = try scanner.word("the oneof's name")
            try scanner.expect(.symbol("{"), "{ after the oneof's name")
            while try !scanner.take(.symbol("}")) {
                if try scanner.take(.symbol(";")) { continue }
                let word = try scanner.word("a field of \(name)")
                if word == "option" {
                    try skipStatement(&scanner)
                } else {
                    try field(of: message, &scanner, word, oneof: oneofs)
                }
            }
            oneofs += 1
        case "option", "reserved", "extensions", "extend": try skipStatement(&scanner)
        default: try field(of: message, &scanner, word, oneof: nil)
        }
    }

    private mutating func field(
        of message: Int, _ scanner: inout ProtoScanner, _ first: String, oneof: Int?
    ) throws(UnusableSchema) {
        var type = first
        var cardinality = ProtobufSchema.Cardinality.single
        if ["optional", "required", "repeated"].contains(first), case .word = scanner.next {
            if first == "repeated" { cardinality = .repeated }
            type = try scanner.word("the type of a field")
        }
        // Groups are passed over, here and in values.
        if type == "group" { return try skipStatement(&scanner) }
        if type == "map", try scanner.take(.symbol("<")) {
            let key = try scanner.word("the type of a map's keys")
            guard let keyType = Self.keys[key] else {
                throw scanner.problem("has a map with keys that no map can have")
            }
            try scanner.expect(.symbol(","), ", in the type of a map")
            type = try scanner.word("the type of a map's values")
            try scanner.expect(.symbol(">"), "> after the type of a map")
            cardinality = .map(key: keyType)
        }
        let name = try scanner.word("the name of a field")
        try scanner.expect(.symbol("="), "= after the name of a field")
        guard case .number(let text) = try scanner.take(), let number = Self.integer(text),
            Self.numbers.contains(number)
        else { throw scanner.problem("has a field without a number in 1 to 536870911") }
        let jsonName = try fieldOptions(&scanner)
        try scanner.expect(.symbol(";"), "; after a field")
        try count(1)
        if Self.scalars[type] == nil {
            open.append(
                OpenField(
                    message: message, field: schema.messages[message].fields.count, name: type))
        }
        schema.messages[message].fields.append(
            ProtobufSchema.Field(
                number: UInt32(number), jsonName: jsonName ?? Self.jsonName(name),
                type: Self.scalars[type] ?? .bytes, cardinality: cardinality, oneof: oneof))
    }

    private static let numbers: ClosedRange<Int64> = 1...536_870_911

    /// The name without underscores, and the letters after them in upper case.
    private static func jsonName(_ name: String) -> [UInt8] {
        var json: [UInt8] = []
        var isUpper = false
        for byte in name.utf8 {
            guard byte != UInt8(ascii: "_") else {
                isUpper = true
                continue
            }
            let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            json.append(isUpper && isLetter ? byte - 0x20 : byte)
            isUpper = false
        }
        return json
    }

    private func checkNumbers(
        of message: Int, _ scanner: borrowing ProtoScanner
    ) throws(UnusableSchema) {
        var seen: Set<UInt32> = []
        for field in schema.messages[message].fields
        where !seen.insert(field.number).inserted {
            throw scanner.problem(
                "gives two fields of \(schema.messages[message].fullName) the number \(field.number)"
            )
        }
    }

    private static let scalars: [String: ProtobufSchema.FieldType] = [
        "double": .double, "float": .float, "int32": .int32, "int64": .int64, "uint32": .uint32,
        "uint64": .uint64, "sint32": .sint32, "sint64": .sint64, "fixed32": .fixed32,
        "fixed64": .fixed64, "sfixed32": .sfixed32, "sfixed64": .sfixed64, "bool": .bool,
        "string": .string, "bytes": .bytes,
    ]

    private static let keys = scalars.filter { name, _ in
        !["double", "float", "bytes"].contains(name)
    }
}
