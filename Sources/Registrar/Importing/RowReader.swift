// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// What is wrong with an input as a whole.
package struct SourceProblem: Error, Hashable, Sendable {
    package let reason: String
}

/// Reads rows: of each the texts that the wanted columns have. A column that is null or missing has
/// none, a JSON array of texts several.
///
/// A column of JSON is a member's name or a JSON pointer. Of Braze `push_tokens.` begins those of a push
/// token, of which a user has several; each is a row. `apps.last_used` is the last of an app's.
package struct RowReader: ~Copyable {
    package typealias Values = [[String]]
    /// Is given the line, and the texts of the wanted columns or what is wrong with the row.
    package typealias Body = (Int, Result<Values, RowProblem>) throws -> Void

    private let format: SourceFormat
    private let delimiter: UInt8
    private let wanted: [String]
    private let optional: Set<String>
    private var records: RecordSplitter
    private var elements = ElementSplitter()
    private var parser = JSONParser(bytesMax: RecordSplitter.recordBytesMax)
    private let members: [JSONColumn]
    /// Of delimited text, where the wanted columns are; nil before the header.
    private var places: [Int?]?
    private var fieldCount = 0
    private var isOver = false

    /// - Parameters:
    ///   - wanted: the columns whose values are wanted.
    ///   - optional: those of them that the input may lack.
    ///   - names: of delimited text without a header the names of all columns, in order.
    package init(
        _ format: SourceFormat, wanted: [String], optional: Set<String> = [],
        names: [String]? = nil, delimiter: UInt8 = UInt8(ascii: ",")
    ) throws(SourceProblem) {
        var members: [JSONColumn] = []
        if !format.isDelimited {
            for name in wanted { members.append(try JSONColumn(name, of: format)) }
        }
        var places: [Int?]?
        if format.isDelimited, let names {
            places = try Self.places(of: wanted, among: names, optional)
        }
        self.format = format
        self.wanted = wanted
        self.optional = optional
        self.delimiter = delimiter
        self.members = members
        self.places = places
        fieldCount = names?.count ?? 0
        let isCSV = format == .csv || format == .onesignal
        records = RecordSplitter(isCSV ? .quotedLines : .lines)
    }

    package mutating func take(_ bytes: UnsafeRawBufferPointer, _ body: Body) throws {
        try split(bytes, body)
    }

    package mutating func finish(_ body: Body) throws { try split(nil, body) }

    /// The splitters are taken out while they lend records, since reading those changes this reader.
    private mutating func split(_ bytes: UnsafeRawBufferPointer?, _ body: Body) throws {
        if format == .sns {
            var splitter = elements
            elements = ElementSplitter()
            defer { elements = splitter }
            if let bytes {
                try splitter.take(bytes) { try read($0, body) }
            } else {
                try splitter.finish { try read($0, body) }
            }
        } else {
            var splitter = records
            records = RecordSplitter(.lines)
            defer { records = splitter }
            if let bytes {
                try splitter.take(bytes) { try read($0, body) }
            } else {
                try splitter.finish { try read($0, body) }
            }
        }
    }

    private mutating func read(_ record: SourceRecord, _ body: Body) throws {
        guard !isOver else { return }
        let line = record.line
        if let problem = record.problem {
            return try body(line, .failure(RowProblem(problem)))
        }
        if format.isDelimited {
            try readFields(record, body)
        } else {
            try readObject(record, body)
        }
    }

    // MARK: Delimited text

    private mutating func readFields(_ record: SourceRecord, _ body: Body) throws {
        let line = record.line
        let fields: [String?]
        do throws(RowProblem) {
            if format == .copy {
                guard let found = try DelimitedText.copy(record.bytes) else {
                    isOver = true
                    return
                }
                fields = found
            } else {
                fields = try DelimitedText.csv(record.bytes, delimiter: delimiter)
            }
        } catch {
            guard places != nil else { throw SourceProblem(reason: "its header: \(error.reason)") }
            return try body(line, .failure(error))
        }
        guard let places else {
            places = try Self.places(of: wanted, among: fields.map { $0 ?? "" }, optional)
            fieldCount = fields.count
            return
        }
        guard fields.count == fieldCount else {
            return try body(
                line,
                .failure(RowProblem("it has \(fields.count) fields, and there are \(fieldCount)")))
        }
        try body(line, .success(places.map { $0.flatMap { fields[$0] }.map { [$0] } ?? [] }))
    }

    /// Shorter than a token in hexadecimal digits.
    private static let nameBytesMax = 31

    private static func places(
        of wanted: [String], among names: [String], _ optional: Set<String>
    ) throws(SourceProblem) -> [Int?] {
        guard Set(names).count == names.count else {
            throw SourceProblem(reason: "two of its columns have one name")
        }
        var found: [Int?] = []
        for column in wanted {
            let place = names.firstIndex(of: column)
            guard place != nil || optional.contains(column) else {
                // What may be a row of data may have a token, which no error shows.
                guard !names.contains(where: { $0.utf8.count > Self.nameBytesMax }) else {
                    throw SourceProblem(
                        reason: "its first line has no names of columns: say them with --fields")
                }
                let known = names.prefix(40).joined(separator: ", ").printable
                throw SourceProblem(reason: "it has no column '\(column)', but \(known)")
            }
            found.append(place)
        }
        return found
    }

    // MARK: JSON

    private mutating func readObject(_ record: SourceRecord, _ body: Body) throws {
        let line = record.line
        let document: JSONValue
        do throws(JSONError) {
            document = try parser.parse(record.bytes)
        } catch {
            return try body(line, .failure(RowProblem("it is not JSON: \(error.message)")))
        }
        guard document.object != nil else {
            return try body(line, .failure(RowProblem("it is not a JSON object")))
        }
        guard format == .braze else {
            return try body(line, values(of: document, nil))
        }
        guard let tokens = document.object?["push_tokens"], !tokens.isNull else { return }
        guard let tokens = tokens.array else {
            return try body(line, .failure(RowProblem("push_tokens is not an array")))
        }
        for token in tokens { try body(line, values(of: document, token)) }
    }

    private func values(
        of document: JSONValue, _ token: JSONValue?
    ) -> Result<Values, RowProblem> {
        Result { () throws(RowProblem) in
            var values: Values = []
            for column in members { values.append(try column.texts(in: document, token)) }
            return values
        }
    }
}

/// A column of JSON.
private enum JSONColumn {
    case member(JSONPointer)
    /// Of one of a user's push tokens.
    case ofToken(JSONPointer)
    /// The latest of these members of an array's elements.
    case latest(array: JSONPointer, JSONPointer)
    /// The platform in the name of an endpoint: `arn:aws:sns:…:endpoint/APNS/app/…`.
    case platformOfEndpoint

    init(_ name: String, of format: SourceFormat) throws(SourceProblem) {
        if format == .braze, name == "apps.last_used" {
            self = .latest(
                array: try Self.pointer("apps"), try Self.pointer("last_used"))
        } else if format == .braze, name.hasPrefix("push_tokens.") {
            self = .ofToken(try Self.pointer(String(name.dropFirst("push_tokens.".count))))
        } else if format == .sns, name == "EndpointArn.platform" {
            self = .platformOfEndpoint
        } else {
            self = .member(try Self.pointer(name))
        }
    }

    private static func pointer(_ name: String) throws(SourceProblem) -> JSONPointer {
        if name.hasPrefix("/") {
            guard let pointer = JSONPointer(name) else {
                throw SourceProblem(reason: "'\(name.printable)' is no JSON pointer")
            }
            return pointer
        }
        // By scalars: a letter of several can begin with one that is to be escaped.
        let escaped = name.unicodeScalars.map { scalar in
            switch scalar {
            case "~": "~0"
            case "/": "~1"
            default: String(scalar)
            }
        }
        return JSONPointer("/" + escaped.joined())!
    }

    func texts(in document: JSONValue, _ token: JSONValue?) throws(RowProblem) -> [String] {
        switch self {
        case .member(let pointer): return try Self.texts(document[pointer])
        case .ofToken(let pointer): return try Self.texts(token?[pointer])
        case .latest(let array, let pointer):
            guard let elements = document[array]?.array else { return [] }
            var latest: String?
            for element in elements {
                guard let text = try Self.texts(element[pointer]).first else { continue }
                // RFC 3339 in UTC sorts as it is.
                latest = max(latest ?? text, text)
            }
            return latest.map { [$0] } ?? []
        case .platformOfEndpoint:
            let name = try Self.texts(document.object?["EndpointArn"]).first ?? ""
            let parts = name.split(separator: "/", omittingEmptySubsequences: false)
            return parts.count > 1 ? [String(parts[1])] : []
        }
    }

    private static func texts(_ value: JSONValue?) throws(RowProblem) -> [String] {
        guard let value, !value.isNull else { return [] }
        guard let elements = value.array else { return [try text(value)] }
        var texts: [String] = []
        for element in elements where !element.isNull {
            guard texts.count < RowMapper.subjectsMax else {
                throw RowProblem("an array has more than \(RowMapper.subjectsMax) texts")
            }
            texts.append(try text(element))
        }
        return texts
    }

    private static func text(_ value: JSONValue) throws(RowProblem) -> String {
        if let string = value.string { return String(decoding: string, as: UTF8.self) }
        if let integer = value.integerText { return integer }
        if let flag = value.bool { return flag ? "true" : "false" }
        if let number = value.double { return "\(number)" }
        throw RowProblem("an object stands where a text is wanted")
    }
}
