// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import SchemaCodecs

@Suite struct `Records with schemas` {
    /// The registry's schemas by number.
    private static let schemas: [UInt32: SchemaAnswer] = [
        1: .known(avro(#"{"name":"id","type":"long"},{"name":"status","type":["null","string"]}"#)),
        2: .known(read(.avro, #""string""#)),
        3: .known(avro(#"{"name":"id","type":"int"}"#)),
        4: .known(
            avro(
                #"""
                {"name":"before","type":["null",{"type":"record","name":"row","fields":[
                  {"name":"id","type":"long"},{"name":"status","type":"string"}]}]},
                {"name":"after","type":["null","row"]},{"name":"op","type":"string"}
                """#)),
        5: .known(read(.protobuf, "message Order { optional int64 id = 1; }")),
        6: .pending, 7: .unreachable("it answers 503"), 8: .unknown("schema 8 is not there"),
        9: .known(read(.avro, #""long""#)),
    ]

    private static func read(_ language: SchemaLanguage, _ text: String) -> RecordSchema {
        try! RecordSchema(SchemaText(language: language, text: Array(text.utf8)))
    }

    private static func avro(_ fields: String) -> RecordSchema {
        read(.avro, #"{"type":"record","name":"r","fields":[\#(fields)]}"#)
    }

    private static func orders(
        _ subject: String = "order-{/id}", _ change: (inout TopicBinding) -> Void = { _ in }
    ) -> TopicBinding {
        var binding = TopicBinding(decode: .json, subject: try! SubjectTemplate(subject))
        binding.valueSchema = .avro
        change(&binding)
        return binding
    }

    private static func framed(_ schema: UInt8, _ content: AvroBytes) -> [UInt8] {
        [0, 0, 0, 0, schema] + content.bytes
    }

    private static let shipped = framed(1, AvroBytes().long(7).long(1).string("shipped"))

    private static func decoder(_ binding: TopicBinding) throws -> EventDecoder {
        try EventDecoder(
            bindings: [binding], routing: IntakeFixtures.routing(), settings: EventSettings(),
            schemas: { schemas[$0.rawValue] ?? .unknown("there is no such schema") })
    }

    /// The subjects of the event, joined by commas, or why there is none.
    private static func outcome(
        _ binding: TopicBinding, key: [UInt8]? = nil, _ value: [UInt8]?,
        headers: [String: String] = [:]
    ) throws -> String {
        var decoder = try decoder(binding)
        return lending(key) { key in
            lending(value) { value in
                lendingHeaders(headers) { header in
                    let record = EventRecord(
                        binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
                    if let awaited = decoder.awaitedSchema(of: record) {
                        return "waits for \(awaited.schema): \(awaited.unreachable ?? "asked")"
                    }
                    do throws(UnreadableRecord) {
                        let event = try decoder.decode(
                            record, now: IntakeFixtures.now, header: header)
                        guard let copy = event.map(EventCopy.init) else { return "filtered" }
                        return
                            ([copy.subject] + copy.furtherSubjects
                            + [copy.payload].compactMap(\.self))
                            .joined(separator: ",")
                    } catch {
                        let subject = decoder.subject(ofUnreadable: record, header: header)
                        return "\(error.code): \(String(decoding: subject, as: UTF8.self))"
                    }
                }
            }
        }
    }

    @Test func `fields of Avro are read like those of JSON`() throws {
        #expect(try Self.outcome(Self.orders(), Self.shipped) == "order-7")
        let conditions = Self.orders {
            $0.conditions = [
                .init(field: FieldPath("/status")!, tests: [.isOneOf([.text("lost")])])
            ]
        }
        #expect(try Self.outcome(conditions, Self.shipped) == "filtered")
        let push = Self.orders {
            $0.push.payload = try! PushTemplate(
                .map([
                    ("aps", .map([("alert", .text("is {/status}"))])), ("id", .text("{/id}")),
                ]))
        }
        #expect(
            try Self.outcome(push, Self.shipped)
                == #"order-7,{"aps":{"alert":"is shipped"},"id":7}"#)
    }

    @Test func `fields of Protobuf and of JSON with a schema are read`() throws {
        let protobuf = Self.orders { $0.valueSchema = .protobuf }
        #expect(try Self.outcome(protobuf, [0, 0, 0, 0, 5, 0, 8, 7]) == "order-7")
        let json = Self.orders { $0.valueSchema = .json }
        #expect(try Self.outcome(json, [0, 0, 0, 0, 99] + Array(#"{"id":7}"#.utf8)) == "order-7")
    }

    @Test func `a key with a schema is a string, an integer, or has fields`() throws {
        func keys(_ subject: String) -> TopicBinding {
            Self.orders(subject) {
                $0.decode = .key
                $0.valueSchema = nil
                $0.keySchema = .schema(.avro)
            }
        }
        let text = Self.framed(2, AvroBytes().string("door-42"))
        #expect(try Self.outcome(keys("{key}"), key: text, nil) == "door-42")
        let number = Self.framed(9, AvroBytes().long(-12))
        #expect(try Self.outcome(keys("order{key}"), key: number, [1, 2, 3]) == "order-12")
        let row = Self.framed(3, AvroBytes().long(5))
        #expect(try Self.outcome(keys("order-{key:/id}"), key: row, nil) == "order-5")
        #expect(try Self.outcome(keys("order-{key}"), key: row, nil) == "missingSubject: ")
        // Both parts, of which each has a schema of its own.
        let both = Self.orders("{key}") {
            $0.keySchema = .schema(.avro)
            $0.subjects = [try! SubjectTemplate("order-{/id}")]
        }
        #expect(try Self.outcome(both, key: text, Self.shipped) == "door-42,order-7")
    }

    @Test func `fields of a key in JSON are read without a schema`() throws {
        let binding = TopicBinding(decode: .key, subject: try SubjectTemplate("order-{key:/id}"))
        #expect(try Self.outcome(binding, key: Array(#"{"id":"a"}"#.utf8), nil) == "order-a")
        #expect(try Self.outcome(binding, key: Array("{".utf8), nil) == "invalidJSON: ")
        var rows = TopicBinding(decode: .debezium, subject: try SubjectTemplate("order-{key:/id}"))
        rows.conditions = [.init(field: FieldPath("key:/id")!, tests: [.above(4)])]
        let change = Array(#"{"op":"c","after":{"x":1}}"#.utf8)
        #expect(
            try Self.outcome(
                rows, key: Array(#"{"schema":{"type":"struct"},"payload":{"id":5}}"#.utf8), change)
                == "order-5")
        #expect(try Self.outcome(rows, key: Array(#"{"id":4}"#.utf8), change) == "filtered")
    }

    @Test func `a change of a row may be Avro`() throws {
        func change(_ before: String?, _ after: String?, _ op: String) -> [UInt8] {
            func row(_ status: String?, _ bytes: AvroBytes) -> AvroBytes {
                status.map { bytes.long(1).long(7).string($0) } ?? bytes.long(0)
            }
            return Self.framed(4, row(after, row(before, AvroBytes())).string(op))
        }
        let binding = Self.orders {
            $0.decode = .debezium
            $0.conditions = [.init(field: FieldPath("/status")!, tests: [.changed(true)])]
        }
        #expect(try Self.outcome(binding, change("a", "b", "u")) == "order-7")
        #expect(try Self.outcome(binding, change("a", "a", "u")) == "filtered")
        #expect(try Self.outcome(binding, change("a", nil, "d")) == "order-7")
        #expect(try Self.outcome(binding, change(nil, "a", "r")) == "filtered")
        #expect(try Self.outcome(binding, nil) == "filtered")
        #expect(try Self.outcome(binding, [2]) == "schemaFrame: ")
    }

    @Test func `a record waits for its schema, and not for one that there is not`() throws {
        #expect(try Self.outcome(Self.orders(), [0, 0, 0, 0, 6]) == "waits for 6: asked")
        #expect(try Self.outcome(Self.orders(), [0, 0, 0, 0, 7]) == "waits for 7: it answers 503")
        #expect(try Self.outcome(Self.orders(), [0, 0, 0, 0, 8]) == "unknownSchema: ")
        let keys = Self.orders("{key}-{/id}") { $0.keySchema = .schema(.avro) }
        #expect(
            try Self.outcome(keys, key: Self.framed(6, AvroBytes()), Self.shipped)
                == "waits for 6: asked")
        #expect(
            try Self.outcome(keys, key: Self.framed(8, AvroBytes()), Self.framed(6, AvroBytes()))
                == "waits for 6: asked")
    }

    /// Between the two questions the registry's answer may have changed; nothing but the first counts.
    @Test func `a record that need not wait is read by the same answers`() throws {
        final class Answers {
            nonisolated(unsafe) static var next: [SchemaAnswer] = []
        }
        Answers.next = [.unknown("gone"), .pending]
        var decoder = try EventDecoder(
            bindings: [Self.orders()], routing: IntakeFixtures.routing(), settings: EventSettings(),
            schemas: { _ in Answers.next.removeFirst() })
        [UInt8](Self.shipped).withUnsafeBytes { value in
            let record = EventRecord(
                binding: 0, key: nil, value: value, timestamp: IntakeFixtures.now)
            #expect(decoder.awaitedSchema(of: record) == nil)
            #expect(
                refusal {
                    _ = try decoder.decode(record, now: IntakeFixtures.now, header: { _ in nil })
                } == .unknownSchema)
            #expect(decoder.awaitedSchema(of: record)?.schema.rawValue == 1)
        }
    }

    @Test func `what is no record of a registry's says so`() throws {
        #expect(try Self.outcome(Self.orders(), Array(#"{"id":7}"#.utf8)) == "schemaFrame: ")
        #expect(try Self.outcome(Self.orders(), Self.framed(1, [7])) == "schemaMismatch: ")
        #expect(
            try Self.outcome(Self.orders(), Self.framed(5, [8, 7])) == "unusableSchema: ")
        #expect(
            try Self.outcome(
                Self.orders(), Self.shipped, headers: ["__value_schema_id": "x"]) == "schemaFrame: "
        )
    }

    @Test func `a binding with a schema needs a subject of its own`() throws {
        func problem(_ binding: TopicBinding) -> TopicBindingError? { binding.ownProblem }
        #expect(problem(Self.orders()) == nil)
        for decode in [TopicBinding.Decode.json, .cloudevents] {
            var binding = TopicBinding(decode: decode)
            binding.valueSchema = .avro
            #expect(problem(binding) == .noSubjectOfSchema)
        }
        #expect(problem(Self.orders("{key}") { $0.decode = .cloudevents }) == .noSubjectOfSchema)
        #expect(problem(Self.orders("{key}") { $0.decode = .key }) == .schemaOfUnreadValue)
    }
}
