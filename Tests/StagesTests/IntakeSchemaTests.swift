// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel
internal import RecordFormats
internal import Testing

/// The schemas in docs/schemas are the contract's text; these tests hold them against the code.
@Suite struct `JSON Schemas` {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("docs/schemas")

    private static func schema(_ name: String) throws -> [String: Any] {
        let data = try Data(contentsOf: folder.appendingPathComponent("\(name).schema.json"))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    private static func properties(_ schema: [String: Any]?) throws -> Set<String> {
        Set(try #require(schema?["properties"] as? [String: Any]).keys)
    }

    @Test(arguments: [
        ("event", EventField.allCases.map(\.rawValue)),
        ("registration", RegistrationField.allCases.map(\.rawValue)),
        ("verdict", VerdictField.allCases.map(\.rawValue)),
        ("deferred", DeferredField.allCases.map(\.rawValue)),
        ("dead-letter", DeadLetterField.allCases.map(\.rawValue)),
    ])
    func `name the fields that the code knows`(name: String, fields: [String]) throws {
        #expect(try Self.properties(Self.schema(name)) == Set(fields))
    }

    @Test func `name the fields of targets, and all classes of tokens`() throws {
        let definitions = try #require(
            try Self.schema("registration")["$defs"] as? [String: [String: Any]])
        #expect(
            try Self.properties(definitions["target"]) == Set(TargetField.allCases.map(\.rawValue)))
        #expect(try Self.properties(definitions["show"]) == Set(ShowField.allCases.map(\.rawValue)))
        let deferred = try #require(try Self.schema("deferred")["properties"] as? [String: Any])
        let words = (deferred["class"] as? [String: Any])?["enum"] as? [String]
        #expect(words == TokenClass.allCases.map(\.name))
    }

    @Test func `judge every sample as the decoders do`() throws {
        var judged = 0
        func add(_ name: String, _ document: String, valid: Bool) throws {
            // What is no JSON is no matter for a schema.
            guard let value = try? JSONDecoder().decode(JSON.self, from: Data(document.utf8))
            else { return }
            let data = try Data(
                contentsOf: Self.folder.appendingPathComponent("\(name).schema.json"))
            let schema = try JSONDecoder().decode(JSON.self, from: data)
            #expect(
                try SchemaJudge(root: schema).accepts(value) == valid,
                "\(name), which the code \(valid ? "reads" : "refuses"): \(document)")
            judged += 1
        }
        for event in IntakeSamples.goodEvents { try add("event", event, valid: true) }
        for (event, _) in IntakeSamples.badEvents { try add("event", event, valid: false) }
        for (value, _) in IntakeSamples.goodRegistrations {
            try add("registration", value, valid: true)
        }
        // A schema does not see the key.
        for (value, code) in IntakeSamples.badRegistrations where code != .keyMismatch {
            try add("registration", value, valid: false)
        }
        for value in IntakeSamples.goodVerdicts { try add("verdict", value, valid: true) }
        for (value, _) in IntakeSamples.badVerdicts { try add("verdict", value, valid: false) }
        for value in IntakeSamples.goodDeferred { try add("deferred", value, valid: true) }
        for (value, _) in IntakeSamples.badDeferred { try add("deferred", value, valid: false) }
        let written = DeadLetterEncoder.value(letter(), eventBytesMax: 1000)
        try add("dead-letter", String(decoding: written, as: UTF8.self), valid: true)
        try add("dead-letter", #"{"v":1,"reason":"x"}"#, valid: false)
        #expect(judged > 85)
    }
}
