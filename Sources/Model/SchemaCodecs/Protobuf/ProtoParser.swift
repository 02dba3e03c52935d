// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// Reads .proto files: what they define, and nothing of options, services and extensions.
///
/// A type is looked up in the scope of the field and then in each scope around it. Which file imports
/// which does not matter, since a registry refers to all that a schema needs.
struct ProtoParser {
    enum TypePlace {
        case message(Int), enumeration(Int)
    }

    var schema = ProtobufSchema()
    /// By full name, without a dot before it.
    var types: [String: TypePlace] = [:]
    /// The fields whose type is a name, to be looked up when all files are read.
    var open: [OpenField] = []
    /// The files that were imported.
    private var imports: [String] = []
    /// Those among them that are nowhere.
    private var missing: [String] = []
    private var parts = 0

    struct OpenField {
        let message: Int
        let field: Int
        let name: String
    }

    /// - Parameter references: the files that `text` imports, and that they import, by the name they
    ///   are imported with. What Confluent's serializers have built in need not be among them.
    static func schema(
        _ text: [UInt8], references: [(name: String, text: [UInt8])] = []
    ) throws(UnusableSchema) -> ProtobufSchema {
        var parser = ProtoParser()
        parser.schema.roots = try parser.file(text)
        var read: Set<String> = []
        for reference in references where read.insert(reference.name).inserted {
            _ = try parser.file(reference.text)
        }
        while let name = parser.imports.popLast() {
            guard read.insert(name).inserted else { continue }
            guard let text = WellKnownFiles.text(name) else {
                parser.missing.append(name)
                continue
            }
            _ = try parser.file(Array(text.utf8))
        }
        parser.resolve()
        return parser.schema
    }

    // MARK: Files

    /// - Returns: the messages at its top.
    private mutating func file(_ text: [UInt8]) throws(UnusableSchema) -> [Int] {
        guard text.count <= SchemaLimits.textBytesMax else {
            throw UnusableSchema("a schema has more than \(SchemaLimits.textBytesMax) bytes")
        }
        var scanner = try ProtoScanner(text)
        var package = ""
        var messages: [Int] = []
        while scanner.next != .end {
            if try scanner.take(.symbol(";")) { continue }
            switch try definition(&scanner) {
            case "syntax": try syntax(&scanner)
            case "package":
                package = try scanner.word("the package's name")
                try scanner.expect(.symbol(";"), "the end of the package's name")
            case "import": try importedFile(&scanner)
            case "message":
                messages.append(try message(&scanner, in: package, depth: 1))
            case "enum": try enumeration(&scanner, in: package)
            // edition, option, service, extend
            default: try skipStatement(&scanner)
            }
        }
        return messages
    }

    /// The keyword of a definition, after the visibility that edition 2024 puts before it.
    private func definition(_ scanner: inout ProtoScanner) throws(UnusableSchema) -> String {
        let word = try scanner.word("a definition")
        guard Self.isVisibility(word, before: scanner.next) else { return word }
        return try scanner.word("a definition")
    }

    static func isVisibility(_ word: String, before next: ProtoScanner.Token) -> Bool {
        (word == "export" || word == "local")
            && (next == .word("message") || next == .word("enum"))
    }

    private func syntax(_ scanner: inout ProtoScanner) throws(UnusableSchema) {
        try scanner.expect(.symbol("="), "= after syntax")
        guard case .string(let version) = try scanner.take(),
            version == Array("proto2".utf8) || version == Array("proto3".utf8)
        else { throw scanner.problem("has a syntax other than proto2 and proto3") }
        try scanner.expect(.symbol(";"), "the end of the syntax")
    }

    private mutating func importedFile(_ scanner: inout ProtoScanner) throws(UnusableSchema) {
        if case .word = scanner.next { _ = try scanner.take() }
        guard case .string(let name) = try scanner.take() else {
            throw scanner.problem("lacks the name of an import")
        }
        try scanner.expect(.symbol(";"), "the end of an import")
        try count(1)
        imports.append(String(decoding: name, as: UTF8.self))
    }

    /// Passes over what ends with a semicolon or with a block.
    func skipStatement(_ scanner: inout ProtoScanner) throws(UnusableSchema) {
        var depth = 0
        while true {
            switch try scanner.take() {
            case .symbol(UInt8(ascii: "{")), .symbol(UInt8(ascii: "[")): depth += 1
            case .symbol(UInt8(ascii: "]")): depth -= 1
            case .symbol(UInt8(ascii: "}")):
                depth -= 1
                guard depth >= 0 else { throw scanner.problem("closes a block that is not open") }
                // An option's value may be a block, after which there is a semicolon; it counts as
                // an empty statement.
                if depth == 0 { return }
            case .symbol(UInt8(ascii: ";")) where depth == 0: return
            case .end: throw scanner.problem("ends too early")
            default: break
            }
        }
    }

    // MARK: Definitions

    mutating func define(
        _ place: TypePlace, _ name: String, _ scanner: borrowing ProtoScanner
    ) throws(UnusableSchema) {
        guard name.utf8.count <= SchemaLimits.nameBytesMax else {
            throw scanner.problem("has a name of more than \(SchemaLimits.nameBytesMax) bytes")
        }
        guard types.updateValue(place, forKey: name) == nil else {
            throw scanner.problem("defines \(name) twice")
        }
        try count(1)
    }

    mutating func count(_ more: Int) throws(UnusableSchema) {
        parts += more
        guard parts <= SchemaLimits.partsMax else {
            throw UnusableSchema("the schema has more than \(SchemaLimits.partsMax) parts")
        }
    }

    mutating func enumeration(
        _ scanner: inout ProtoScanner, in scope: String
    ) throws(UnusableSchema) {
        let name = Self.name(try scanner.word("the enum's name"), in: scope)
        try define(.enumeration(schema.enumerations.count), name, scanner)
        try scanner.expect(.symbol("{"), "{ after the enum's name")
        var values: [(number: Int32, name: [UInt8])] = []
        var seen: Set<Int32> = []
        while try !scanner.take(.symbol("}")) {
            if try scanner.take(.symbol(";")) { continue }
            let word = try scanner.word("a value of the enum")
            if word == "option" || word == "reserved", scanner.next != .symbol("=") {
                try skipStatement(&scanner)
                continue
            }
            try scanner.expect(.symbol("="), "= after a value of the enum")
            let number = try Self.number(&scanner)
            _ = try fieldOptions(&scanner)
            try scanner.expect(.symbol(";"), "the end of a value of the enum")
            try count(1)
            if seen.insert(number).inserted { values.append((number, Array(word.utf8))) }
        }
        values.sort { $0.number < $1.number }
        schema.enumerations.append(ProtobufSchema.Enumeration(fullName: name, values: values))
    }

    static func name(_ name: String, in scope: String) -> String {
        scope.isEmpty ? name : "\(scope).\(name)"
    }

    private static func number(_ scanner: inout ProtoScanner) throws(UnusableSchema) -> Int32 {
        let isNegative = try scanner.take(.symbol("-"))
        guard case .number(let text) = try scanner.take(), let magnitude = integer(text),
            let number = Int32(exactly: isNegative ? -magnitude : magnitude)
        else { throw scanner.problem("lacks the number of an enum's value") }
        return number
    }

    /// Decimal, hexadecimal or octal digits.
    static func integer(_ text: String) -> Int64? {
        if text.hasPrefix("0x") || text.hasPrefix("0X") {
            return Int64(text.dropFirst(2), radix: 16)
        }
        if text.hasPrefix("0"), text.utf8.count > 1 { return Int64(text.dropFirst(), radix: 8) }
        return Int64(text)
    }

    /// Reads the options in brackets after a field, if there are any.
    /// - Returns: the value of `json_name`.
    mutating func fieldOptions(_ scanner: inout ProtoScanner) throws(UnusableSchema) -> [UInt8]? {
        guard try scanner.take(.symbol("[")) else { return nil }
        var jsonName: [UInt8]?
        var depth = 1
        var isAtName = true
        while depth > 0 {
            let isName = isAtName && depth == 1
            isAtName = false
            switch try scanner.take() {
            case .word("json_name") where isName:
                guard try scanner.take(.symbol("=")), case .string(let name) = scanner.next,
                    !name.isEmpty, name.withUnsafeBytes(UTF8Text.isValid)
                else { throw scanner.problem("has a json_name without a value") }
                jsonName = name
            case .symbol(UInt8(ascii: ",")): isAtName = true
            case .symbol(UInt8(ascii: "[")), .symbol(UInt8(ascii: "{")): depth += 1
            case .symbol(UInt8(ascii: "]")), .symbol(UInt8(ascii: "}")): depth -= 1
            case .end: throw scanner.problem("ends too early")
            default: break
            }
        }
        return jsonName
    }

    // MARK: Names of types

    private mutating func resolve() {
        for reference in open {
            let scope = schema.messages[reference.message].fullName
            switch place(of: reference.name, in: scope) {
            case .message(let message):
                schema.messages[reference.message].fields[reference.field].type = .message(message)
            case .enumeration(let type):
                schema.messages[reference.message].fields[reference.field].type =
                    .enumeration(type)
            case nil:
                schema.messages[reference.message].fields[reference.field].type =
                    .unresolved(schema.unresolved.count)
                schema.unresolved.append(unknown(reference.name))
            }
        }
    }

    private func unknown(_ name: String) -> String {
        let name =
            "the Protobuf schema does not define the type "
            + String(name.prefix(200)).printable
        guard !missing.isEmpty else { return name }
        let files = missing.sorted().prefix(5).map { String($0.prefix(200)).printable }
        return name + "; its registry has no reference for the import of "
            + files.joined(separator: ", ")
    }

    private func place(of name: String, in scope: String) -> TypePlace? {
        if name.hasPrefix(".") { return types[String(name.dropFirst())] }
        var scope = scope[...]
        while !scope.isEmpty {
            if let place = types["\(scope).\(name)"] { return place }
            scope = scope.lastIndex(of: ".").map { scope[..<$0] } ?? ""
        }
        return types[name]
    }
}
