// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

/// The field tables are the contract: the schemas and the page in docs are made from them, and
/// these tests hold the decoders against them.
@Suite struct `Record formats` {
    private static let docs = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("docs")

    private static func judge(_ name: String) throws -> SchemaJudge {
        let file = docs.appendingPathComponent("schemas/\(name).schema.json")
        return SchemaJudge(root: try JSON.parsed(try String(contentsOf: file, encoding: .utf8)))
    }

    /// `make docs` runs this test with `WRITE_DOCS`, and the files are rewritten.
    @Test func `the page of records and the schemas are what the field tables say`() throws {
        var files = ["records.md": RecordFormat.reference]
        for format in RecordFormat.all {
            files["schemas/\(format.name).schema.json"] = format.jsonSchema
        }
        for (name, text) in files {
            let file = Self.docs.appendingPathComponent(name)
            if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
                try text.write(to: file, atomically: true, encoding: .utf8)
            }
            #expect(
                try String(contentsOf: file, encoding: .utf8) == text, "\(name): run `make docs`")
        }
        let folder = Self.docs.appendingPathComponent("schemas").path
        let written = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(Set(written.map { "schemas/" + $0 }) == Set(files.keys).subtracting(["records.md"]))
    }

    @Test func `no table has more fields than a reader has room for`() {
        let tables: [[FieldRow]] = [
            EventField.rows, ShardField.rows, RegistrationField.rows, TargetField.rows,
            ShowField.rows, SuppressionField.rows, DeferredField.rows, DeadLetterField.rows,
            LetterTargetField.rows, OriginalField.rows, HeaderField.rows, SourceField.rows,
            OutcomeField.rows,
        ]
        for rows in tables {
            #expect(rows.count <= 24)
            #expect(Set(rows.map(\.name)).count == rows.count)
            #expect(rows.allSatisfy { (1...16).contains($0.name.utf8.count) })
        }
    }

    private static let names = RecordFormat.all.map(\.name)
    /// Nobody here reads outcomes.
    private static let read = names.filter { $0 != "outcome" }

    private static func format(_ name: String) throws -> RecordFormat {
        try #require(RecordFormat.all.first { $0.name == name })
    }

    @Test(arguments: names)
    func `the example is what the schema and the decoder take`(name: String) throws {
        let format = try Self.format(name)
        let value = String(decoding: format.example.value, as: UTF8.self)
        #expect(try Self.judge(format.name).accepts(try JSON.parsed(value)))
        if Self.read.contains(name) {
            #expect(RecordReading.problem(of: format.example, as: format) == nil)
        }
        #expect(RecordFormat.reference.contains(value))
    }

    @Test func `the registration in the page of commands is one`() throws {
        let page = try String(
            contentsOf: Self.docs.appendingPathComponent("commands.md"), encoding: .utf8)
        let start = try #require(page.range(of: #"{"v":1,"#))
        let end = try #require(page.range(of: "\nJSON\n", range: start.upperBound..<page.endIndex))
        let value = String(page[start.lowerBound..<end.lowerBound])
        #expect(try Self.judge("registration").accepts(try JSON.parsed(value)))
        let example = RecordReading.Record(
            key: Array(IntakeSamples.registrationKey.utf8), value: Array(value.utf8))
        #expect(RecordReading.problem(of: example, as: .registration) == nil)
    }

    // MARK: The decoders against the tables

    /// A value within the bounds of its field may be refused for what the routing or the key says,
    /// never for itself; one beyond them always is.
    @Test(arguments: names)
    func `the decoder and the schema keep to the table`(name: String) throws {
        let format = try Self.format(name)
        let judge = try Self.judge(format.name)
        let members = try #require(
            try JSON.parsed(String(decoding: format.example.value, as: UTF8.self)).object)
        var probed = 0
        for probe in FieldProbe.all(of: format) {
            let document = probe.applied(to: members)
            let record = RecordReading.Record(
                key: probe.key(of: format), value: Array(document.text.utf8))
            if Self.read.contains(name) {
                let code = RecordReading.problem(of: record, as: format)
                #expect(
                    probe.isFit == !FieldProbe.faults.contains(code),
                    "\(format.name), \(probe): the decoder says \(code?.rawValue ?? "nothing")")
            }
            #expect(
                try judge.accepts(document) == probe.isFit, "\(format.name), \(probe): the schema")
            probed += 1
        }
        #expect(probed > 15)
    }

    @Test func `every sample is judged by the schema as by the decoders`() throws {
        var judged = 0
        var judges: [String: SchemaJudge] = [:]
        func add(_ name: String, _ document: String, valid: Bool) throws {
            // What is no JSON is no matter for a schema.
            guard let value = try? JSON.parsed(document) else { return }
            if judges[name] == nil { judges[name] = try Self.judge(name) }
            #expect(
                try judges[name]!.accepts(value) == valid,
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
        for value in IntakeSamples.goodSuppressions { try add("suppression", value, valid: true) }
        for (value, _) in IntakeSamples.badSuppressions {
            try add("suppression", value, valid: false)
        }
        for value in IntakeSamples.goodDeferred { try add("deferred", value, valid: true) }
        for (value, _) in IntakeSamples.badDeferred { try add("deferred", value, valid: false) }
        let written = DeadLetterEncoder.value(letter(), eventBytesMax: 1000)
        try add("dead-letter", String(decoding: written, as: UTF8.self), valid: true)
        try add("dead-letter", #"{"v":1,"reason":"x"}"#, valid: false)
        #expect(judged > 85)
    }
}
