// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import SchemaCodecs
internal import Simdjson

/// Reads what connectors write inside of JSON: rows and keys that are texts of JSON (MongoDB's, an
/// outbox's), and decimals in base64. What is plain JSON is returned as it is, and costs nothing.
struct RowReader: ~Copyable {
    private var before: JSONParser
    private var after: JSONParser
    private var key: JSONParser
    private var whole: JSONParser
    /// JSON that is written anew.
    private var text: [UInt8] = []
    /// Whether the record may have decimals in base64.
    private var mayHaveDecimals = false

    init(bytesMax: Int) {
        before = JSONParser(bytesMax: bytesMax)
        after = JSONParser(bytesMax: bytesMax)
        key = JSONParser(bytesMax: bytesMax)
        whole = JSONParser(bytesMax: bytesMax)
    }

    enum Row {
        case before, after

        fileprivate var name: StaticString { self == .before ? "before" : "after" }
    }

    // MARK: Rows

    /// A record's rows follow. One search through its text saves most from a look at their columns: where
    /// there is a decimal, its scale is beside it or in the schema.
    mutating func begin(_ text: UnsafeRawBufferPointer) {
        mayHaveDecimals = text.contains("scale")
    }

    /// A row of a change.
    /// - Parameter schema: that of the envelope.
    /// - Returns: nil if the row is a text that is no JSON object.
    mutating func row(_ row: Row, _ value: JSONValue, schema: JSONObject?) -> JSONValue? {
        if let text = value.string {
            switch row {
            case .before: return Self.object(in: text, &before)
            case .after: return Self.object(in: text, &after)
            }
        }
        guard let object = value.object else { return nil }
        guard mayHaveDecimals else { return value }
        let scales = schema.map { Self.scales(of: row, in: $0) } ?? []
        guard rewriteDecimals(of: object, scales) else { return value }
        let found: JSONValue? =
            switch row {
            case .before: text.withUnsafeBytes { try? before.parse($0) }
            case .after: text.withUnsafeBytes { try? after.parse($0) }
            }
        return found ?? value
    }

    private static func object(
        in text: UnsafeRawBufferPointer, _ parser: inout JSONParser
    ) -> JSONValue? {
        guard let value = try? parser.parse(text), value.object != nil else { return nil }
        return value
    }

    // MARK: Decimals

    /// A field of a row whose schema says that it is a decimal.
    private struct Scale {
        let name: UnsafeRawBufferPointer
        let scale: Int64
    }

    private static let decimal = "org.apache.kafka.connect.data.Decimal"

    private static func scales(of row: Row, in schema: JSONObject) -> [Scale] {
        guard let rows = schema["fields"]?.array else { return [] }
        var scales: [Scale] = []
        for candidate in rows {
            guard let described = candidate.object, let fields = described["fields"]?.array,
                described["field"]?.string.map({ $0.equals(row.name) }) ?? false
            else { continue }
            for field in fields {
                guard let field = field.object, let name = field["field"]?.string,
                    field["name"]?.string?.elementsEqual(decimal.utf8) ?? false,
                    let scale = field["parameters"]?.object?["scale"]?.string,
                    let value = Int64(String(decoding: scale, as: UTF8.self))
                else { continue }
                scales.append(Scale(name: name, scale: value))
            }
        }
        return scales
    }

    /// Writes the row with its decimals as texts of digits; false if it has none.
    private mutating func rewriteDecimals(of row: JSONObject, _ scales: [Scale]) -> Bool {
        guard !scales.isEmpty || row.contains(where: { Self.variableScale($0.value) != nil })
        else { return false }
        text.removeAll(keepingCapacity: true)
        var minifier = JSONMinifier(of: row.value)
        var separator = UInt8(ascii: "{")
        for (name, value) in row {
            text.append(separator)
            separator = UInt8(ascii: ",")
            JSONString.append(name, to: &text)
            text.append(UInt8(ascii: ":"))
            if let (scale, digits) = Self.variableScale(value),
                ConnectDecimal.append(base64: digits, scale: scale, to: &text)
            {
                continue
            }
            if let digits = value.string, !digits.isEmpty,
                let scale = scales.first(where: { $0.name.equals(name) })?.scale,
                ConnectDecimal.append(base64: digits, scale: scale, to: &text)
            {
                continue
            }
            guard minifier.append(value, to: &text, bytesMax: .max / 2) else { return false }
        }
        if separator == UInt8(ascii: "{") { text.append(separator) }
        text.append(UInt8(ascii: "}"))
        Self.keepHalves(of: row.value, in: &text)
        return true
    }

    /// Debezium's `VariableScaleDecimal`.
    private static func variableScale(
        _ value: JSONValue
    ) -> (scale: Int64, digits: UnsafeRawBufferPointer)? {
        guard let object = value.object else { return nil }
        var (scale, digits): (Int64?, UnsafeRawBufferPointer?) = (nil, nil)
        // An app's own object has other members, too.
        for (name, value) in object {
            if name.equals("scale") {
                scale = value.integer
            } else if name.equals("value") {
                digits = value.string
            } else {
                return nil
            }
        }
        return scale.flatMap { scale in digits.map { (scale, $0) } }
    }

    // MARK: Texts of JSON

    /// A key of a change: MongoDB's connector writes its identifiers as texts of JSON.
    mutating func key(_ value: JSONValue) -> JSONValue {
        guard let object = value.object, object.contains(where: { Self.isQuoted($0.value) })
        else { return value }
        return expanded(value, where: { Self.isQuoted($1) })
            .flatMap { text in text.withUnsafeBytes { try? key.parse($0) } } ?? value
    }

    /// A document that is a text of JSON, or has texts of JSON as members.
    /// - Parameter paths: what is looked for. A member that none of them leads into stays a text.
    /// - Returns: nil if it has none.
    mutating func expanded(_ value: JSONValue, for paths: [JSONPointer]) -> JSONValue? {
        if let text = value.string { return Self.object(in: text, &whole) }
        let isWanted = { (name: UnsafeRawBufferPointer, value: JSONValue) in
            Self.isDocument(value) && paths.contains { $0.steps[0].elementsEqual(name) }
        }
        guard let object = value.object,
            object.contains(where: { isWanted($0.key, $0.value) })
        else { return nil }
        return expanded(value, where: isWanted)
            .flatMap { text in text.withUnsafeBytes { try? whole.parse($0) } }
    }

    /// The object with the texts of some members as the JSON that they are of.
    private mutating func expanded(
        _ value: JSONValue, where isOne: (UnsafeRawBufferPointer, JSONValue) -> Bool
    ) -> [UInt8]? {
        var text: [UInt8] = []
        var minifier = JSONMinifier(of: value)
        var separator = UInt8(ascii: "{")
        for (name, value) in value.object! {
            text.append(separator)
            separator = UInt8(ascii: ",")
            JSONString.append(name, to: &text)
            text.append(UInt8(ascii: ":"))
            if isOne(name, value), let inner = value.string, (try? whole.parse(inner)) != nil {
                text += inner
            } else if !minifier.append(value, to: &text, bytesMax: .max / 2) {
                return nil
            }
        }
        text.append(UInt8(ascii: "}"))
        Self.keepHalves(of: value, in: &text)
        return text
    }

    /// Half of a character stays half of one where a document is written anew, so that what it would
    /// name is refused.
    private static func keepHalves(of value: JSONValue, in text: inout [UInt8]) {
        guard value.hasMendedStrings else { return }
        text.replace([0xEF, 0xBF, 0xBD], with: Array(#"\ud800"#.utf8))
    }

    private static func isQuoted(_ value: JSONValue) -> Bool {
        guard let text = value.string, text.count > 2 else { return false }
        return text[0] == UInt8(ascii: "\"")
            || text[0] == UInt8(ascii: "{") && text[1] == UInt8(ascii: "\"")
                && text[2] == UInt8(ascii: "$")
    }

    private static func isDocument(_ value: JSONValue) -> Bool {
        guard let first = value.string?.first else { return false }
        return first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    }
}

extension JSONValue {
    /// What Debezium writes for a column that PostgreSQL did not send since it has not changed.
    private static let unavailable = "__debezium_unavailable_value"
    private static let unavailableBase64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
    /// What wraps one value in MongoDB's extended JSON.
    private static let wrappers = [
        "$oid", "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal", "$date",
    ]

    private static func isUnavailable(_ text: UnsafeRawBufferPointer) -> Bool {
        switch text.count {
        case unavailable.utf8.count: text.elementsEqual(unavailable.utf8)
        case unavailableBase64.utf8.count: text.elementsEqual(unavailableBase64.utf8)
        default: false
        }
    }

    /// Whether the value stands for one that the database did not send.
    var isUnavailable: Bool {
        if let text = string { return Self.isUnavailable(text) }
        if let array {
            var items = array.makeIterator()
            guard let first = items.next() else { return false }
            return (first.string.map(Self.isUnavailable) ?? false) && items.next() == nil
        }
        guard let object else { return false }
        var members = object.makeIterator()
        guard let first = members.next() else { return false }
        return Self.isUnavailable(first.key) && members.next() == nil
    }

    /// The value of a column that a connector has wrapped: a cell of Cassandra's or YugabyteDB's, or a
    /// value in MongoDB's extended JSON.
    var unwrapped: JSONValue {
        guard let object else { return self }
        var (value, isSet): (JSONValue?, Bool) = (nil, false)
        for (count, member) in object.enumerated() {
            if count == 0, Self.wrappers.contains(where: { member.key.elementsEqual($0.utf8) }) {
                value = member.value
                isSet = true
            } else if member.key.equals("value") {
                value = member.value
            } else if member.key.equals("set") {
                isSet = member.value.bool != nil
            } else if !member.key.equals("deletion_ts") {
                return self
            }
        }
        return isSet ? value ?? self : self
    }
}
