// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// A change of one member of an example, made of the member's row of the field table.
struct FieldProbe: CustomStringConvertible {
    let format: String
    let field: String
    /// Nil leaves the member out.
    let value: JSON?
    /// Whether the table allows it.
    let isFit: Bool

    var description: String {
        "\(field): \(value.map { String($0.text.prefix(60)) } ?? "left out")"
    }

    /// What a decoder says of a member that is not what its table demands.
    static let faults: [UnreadableCode?] = [
        .invalidField, .missingField, .invalidPayload, .unknownVersion,
    ]

    func applied(to members: [String: JSON]) -> JSON {
        var members = members
        members[field] = value
        // The two lives of an event exclude each other.
        if field == "expiresAt", value != nil { members["ttlSeconds"] = nil }
        // Of the two names for bytes the plain one is read first.
        if field == "subjectBase64" { members["subject"] = nil }
        // The payload of the other members is an alert's, which it says itself.
        members[field == "pushType" ? "payload" : "pushType"] = nil
        // Only a limit needs a rate.
        if field == "perSecond", value == nil || value == .null {
            members["action"] = .string("pause")
        }
        addRollout(to: &members)
        // An event for a whole app has no subject and no kinds.
        for other in field == "all" ? ["subject", "kinds"] : ["all"] { members[other] = nil }
        // What an event names is a subject or an installation.
        if format == RecordFormat.event.name, field == "installation" { members["subject"] = nil }
        return .object(members)
    }

    /// A rollout has members and a key of its own.
    private static var rollout: [String: JSON] {
        [
            "steps": .array([
                .object([
                    "percent": .number(10), "from": .string("2026-11-21T06:12:00Z"),
                ])
            ]), "classes": .array([.string("device")]),
        ]
    }

    private func addRollout(to members: inout [String: JSON]) {
        guard isOfRollout else { return }
        members.merge(Self.rollout) { there, _ in there }
        (members["action"], members["until"]) = (.string("rollout"), nil)
    }

    /// Whether the probe makes a rollout of a restriction. Whoever leaves a member out has another action.
    private var isOfRollout: Bool {
        guard format == RecordFormat.restriction.name, let value, value != .null else {
            return false
        }
        if field == "action" { return value == .string("rollout") }
        return field == "tokens" || Self.rollout[field] != nil
    }

    func key(of format: RecordFormat) -> [UInt8] {
        isOfRollout
            ? RecordKey.restriction(.rollout(app: "com.example.Home")) : format.example.key
    }

    static func all(of format: RecordFormat) -> [FieldProbe] {
        format.fields.flatMap { row -> [FieldProbe] in
            func probe(_ value: JSON?, _ isFit: Bool) -> FieldProbe {
                FieldProbe(
                    format: format.name, field: row.name, value: value, isFit: isFit)
            }
            // The reader of dead letters takes `null` for absent, though no letter has it.
            let literal = format.isClosed ? [] : [probe(.null, !row.isRequired)]
            return [probe(nil, !row.isRequired)] + literal
                + fit(row.type).map { probe($0, true) } + unfit(row.type).map { probe($0, false) }
        }
    }

    private static func text(_ count: Int) -> JSON {
        .string(String(repeating: "x", count: count))
    }

    private static func fit(_ type: FieldType) -> [JSON] {
        switch type {
        case .version: [.number(1)]
        case .flag: [.bool(true)]
        case .bool: [.bool(true), .bool(false)]
        case .any: [.number(1), .string("x"), .array([])]
        // A word that is known: a decoder passes over what stands beside another.
        case .openWord: [.string("device")]
        case .text(let bytes): [text(bytes.lowerBound), text(bytes.upperBound)]
        case .base64: [.string(""), .string("/w=="), .string("AAAA")]
        case .instant:
            [.string("2026-11-21T06:12:00Z"), .string("2026-11-21t06:12:00.5+01:30")]
        // Doubles of a test's JSON are exact up to 2^53.
        case .integer(let range):
            [
                .number(Double(range.lowerBound)),
                .number(Double(min(range.upperBound, 1 << 53))),
            ]
        case .oneOf(let words): words.map { .string($0) }
        case .oneOfNumbers(let numbers): numbers.map { .number(Double($0)) }
        case .environment: [.string("production"), .string("development")]
        case .tokenID: [.string("4bf5122F344554c5")]
        case .keyPart: [.string("aZ09._~-"), text(RecordLimits.keyPartBytesMax)]
        case .token, .targetToken: [.string("0f")]
        case .collapseID: [.string("a b"), text(RecordLimits.collapseIDBytesMax)]
        case .payload, .body: [.object(["aps": .object(["alert": .string("x")])])]
        case .pushType: ["controls", "background", "location"].map { .string($0) }
        case .object(let rows): [whole(rows)]
        case .array(let element, let count):
            (count == nil || count?.lowerBound == 0 ? [.array([])] : [])
                + [.array([fit(element)[0]])] + repeated(element, count?.upperBound ?? 3)
        }
    }

    private static func unfit(_ type: FieldType) -> [JSON] {
        switch type {
        case .version: [.number(2), .string("1")]
        case .flag: [.bool(false), .string("true")]
        case .bool: [.string("true"), .number(1)]
        case .any: []
        case .openWord: [.number(1)]
        case .text(let bytes):
            [text(bytes.upperBound + 1), .number(1)]
                + (bytes.lowerBound > 0 ? [text(bytes.lowerBound - 1)] : [] as [JSON])
        case .base64: [.string("/w="), .string("?"), .number(1)]
        case .instant: [.string("2026-11-21"), .string("now"), .number(1_700_000_000)]
        case .integer(let range):
            [.number(Double(range.lowerBound) - 1), .string("1"), .number(0.5)]
                + (range.upperBound < 1 << 53 ? [.number(Double(range.upperBound) + 1)] : [])
        case .oneOf: [.string("x"), .number(1)]
        case .oneOfNumbers: [.number(7), .string("1")]
        case .environment: [.string("staging"), .number(1)]
        case .tokenID: [text(16), .string("4bf5122f344554c"), .string(""), .number(1)]
        case .keyPart: [.number(1)]
        case .token, .targetToken: [.string("0"), .string("0g"), .string(""), .number(1)]
        case .collapseID:
            [
                .string(""), .string(" a"), .string("a "), .string("é"), .number(1),
                text(RecordLimits.collapseIDBytesMax + 1),
            ]
        case .payload: [.string("x"), .object([:]), .object(["aps": .object([:])])]
        case .body: [.string("x")]
        case .pushType: ["x", "alert", "voip"].map { .string($0) } + [.number(1)]
        case .object(let rows):
            [.string("x")]
                + rows.flatMap { row in
                    (row.isRequired ? [without(row, of: rows)] : [])
                        + unfit(row.type).map { with(row, $0, of: rows) }
                }
        case .array(let element, let count):
            [.object([:])] + unfit(element).map { .array([$0]) }
                + (count.map { $0.lowerBound > 0 } ?? false ? [.array([])] : [])
                + (count.map { repeated(element, $0.upperBound, and: 1) } ?? [])
        }
    }

    /// One list, or none where it would be very long.
    private static func repeated(
        _ element: FieldType, _ count: Int, and more: Int = 0
    ) -> [JSON] {
        guard count < 10_000 else { return [] }
        return [.array(Array(repeating: fit(element)[0], count: count + more))]
    }

    // MARK: Objects within

    private static func whole(_ rows: [FieldRow]) -> JSON {
        // A target without a token is not looked at any further.
        .object(
            rows.filter { $0.isRequired || $0.name == "token" }
                .reduce(into: [:]) { $0[$1.name] = fit($1.type)[0] })
    }

    private static func with(_ row: FieldRow, _ value: JSON, of rows: [FieldRow]) -> JSON {
        var members = whole(rows).object ?? [:]
        members[row.name] = value
        return .object(members)
    }

    private static func without(_ row: FieldRow, of rows: [FieldRow]) -> JSON {
        var members = whole(rows).object ?? [:]
        members[row.name] = nil
        return .object(members)
    }
}
