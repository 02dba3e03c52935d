// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import SchemaCodecs
internal import Testing

@Suite struct `Formats of keys` {
    private static func binding(
        _ format: KeyFormat?, _ subject: String? = "{key}",
        _ change: (inout TopicBinding) -> Void = { _ in }
    ) -> TopicBinding {
        var binding = TopicBinding(decode: .key, subject: subject.map { try! SubjectTemplate($0) })
        binding.keySchema = format
        change(&binding)
        return binding
    }

    /// The subject, or the code of the refusal and its message.
    private static func outcome(
        _ key: [UInt8]?, _ binding: TopicBinding, _ value: String? = nil
    ) throws -> String {
        var decoder = try EventDecoder(
            bindings: [binding], routing: IntakeFixtures.routing(), settings: EventSettings())
        return lending(key) { key in
            lending(value.map { Array($0.utf8) }) { value in
                let record = EventRecord(
                    binding: 0, key: key, value: value, timestamp: IntakeFixtures.now)
                do throws(UnreadableRecord) {
                    let event = try decoder.decode(
                        record, now: IntakeFixtures.now, header: { _ in nil })
                    return event.map { String(decoding: $0.subject, as: UTF8.self) } ?? "filtered"
                } catch { return "\(error.code): \(error.message)" }
            }
        }
    }

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    @Test(
        arguments: [
            (#""42""#, "42"), ("42", "42"), ("-7", "-7"),
            ("18446744073709551616", "18446744073709551616"),
            (#" "42" "#, "42"), (#""4\u0032""#, "42"), (#""Tür""#, "Tür"),
            (#"{"schema":{"type":"string"},"payload":"42"}"#, "42"),
            (#"{"schema":null,"payload":42}"#, "42"),
            (#"{"id":42}"#, "missingSubject: the subject template needs a key that is a string"),
            ("[42]", "missingSubject: "), ("true", "missingSubject: "),
            ("null", "missingSubject: "),
            ("4.5", "missingSubject: "), (#""""#, "missingSubject: "), ("", "missingSubject: "),
            (
                "door-42",
                "invalidJSON: the key is no JSON, of which fields are read; it has 7 bytes: it is text"
            ),
            (
                #""42"#,
                "invalidJSON: the key is no JSON, of which fields are read; it has 3 bytes: it begins as JSON does, and is damaged"
            ), ("Struct{id=42}", "invalidJSON: "),
        ])
    func `a key in JSON is the text or the integer in it`(key: String, outcome: String) throws {
        for bytes in [Array(key.utf8), Self.mark + key.utf8] {
            let found = try Self.outcome(bytes, Self.binding(.json))
            #expect(outcome.contains(":") ? found.hasPrefix(outcome) : found == outcome, "\(found)")
        }
    }

    @Test(
        arguments: [
            (.int64, [0, 0, 0, 0, 0, 0, 0, 42], "42"),
            (.int64, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE], "-2"),
            (.int64, [0x80, 0, 0, 0, 0, 0, 0, 0], "-9223372036854775808"),
            (.int64, [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "9223372036854775807"),
            (.int32, [0, 0, 0, 42], "42"), (.int32, [0xFF, 0xFF, 0xFF, 0xFF], "-1"),
            (.int32, [0x80, 0, 0, 0], "-2147483648"), (.int32, [0, 0, 0, 0], "0"),
            (
                .int64, [0, 0, 0, 42],
                "invalidKey: the record's key has 4 bytes, and keySchema: int64"
            ),
            (
                .int64, [0, 0, 0, 42],
                "reads an integer in 8: it may be an integer: say keySchema: int32"
            ),
            (.int32, [0, 0, 0, 0, 0, 0, 0, 42], "say keySchema: int64"),
            (.int64, Array("42".utf8), "it is text, for which keySchema is left out"),
            (.int64, Array("12345678".utf8), "it is text, for which keySchema is left out"),
            (.int64, Array("00000000".utf8), "is 8 digits, of which keySchema: int64 would make"),
            (.int64, Array("1234567:".utf8), "3544952156018063162"),
            // An integer in four bytes may look like digits.
            (.int32, Array("0000".utf8), "808464432"), (.int32, Array("1234".utf8), "825373492"),
            (.int32, Array("9999".utf8), "960051513"), (.int32, Array("12:4".utf8), "825375284"),
            (.int32, Array(#""door-42""#.utf8), "for which keySchema: json is"),
            (.int64, [0, 0, 0, 0, 7, 84], "say keySchema: avro, protobuf or jsonSchema"),
            (.int32, [0xC3, 1, 9], "see docs/record-schemas.md"), (.int64, [], "missingSubject"),
        ] as [(KeyFormat, [UInt8], String)])
    func `a key that is an integer is its digits`(
        format: KeyFormat, key: [UInt8], outcome: String
    ) throws {
        let found = try Self.outcome(key, Self.binding(format))
        #expect(found.contains(outcome), "\(found)")
        guard Int64(outcome) != nil else { return }
        #expect(found == outcome)
        // With a subject or without, in a template or as a field.
        #expect(try Self.outcome(key, Self.binding(format, nil)) == outcome)
        #expect(try Self.outcome(key, Self.binding(format, "door-{key:}")) == "door-" + outcome)
        let document = Self.binding(format, "door-{key}") {
            $0.decode = .json
            $0.conditions = [.init(field: FieldPath("/open")!, tests: [.isOneOf([.flag(true)])])]
        }
        #expect(try Self.outcome(key, document, #"{"open":true}"#) == "door-" + outcome)
        #expect(try Self.outcome(key, document, #"{"open":false}"#) == "filtered")
    }

    @Test func `a byte order mark before a key is no part of it`() throws {
        let key = Self.mark + "door-42".utf8
        for binding in [Self.binding(nil, nil), Self.binding(nil), .standard] {
            #expect(try Self.outcome(key, binding) == "door-42")
        }
        #expect(try Self.outcome(Self.mark, Self.binding(nil, nil)).hasPrefix("missingSubject"))
        #expect(
            try Self.outcome(
                Self.mark + #"{"id":42}"#.utf8, Self.binding(nil, "door-{key:/id}")) == "door-42")
        // A mark elsewhere, or part of one, is the key's own.
        #expect(try Self.outcome([0x61] + Self.mark, Self.binding(nil, nil)) == "a\u{FEFF}")
        #expect(try Self.outcome(Self.mark + Self.mark + [0x61], Self.binding(nil, nil)) == "a")
        // As many as a record can have.
        let many = Array(repeatElement(Self.mark, count: 350_000).joined())
        #expect(try Self.outcome(many + [0x61], Self.binding(nil, nil)) == "a")
    }

    @Test func `a byte order mark before a key is in no payload and in no dead letter's subject`()
        throws
    {
        let binding = Self.binding(nil) {
            $0.decode = .json
            $0.push.payload = try! PushTemplate(
                .map([("aps", .map([("alert", .text("{key}"))])), ("k", .text("of {key}"))]))
        }
        let keys: [([UInt8], String?)] = [
            (Self.mark + "door-42".utf8, "door-42"), (Self.mark, nil),
        ]
        for (key, text) in keys {
            var decoder = try EventDecoder(
                bindings: [binding, .standard], routing: IntakeFixtures.routing(),
                settings: EventSettings())
            lending(key) { key in
                let record = EventRecord(
                    binding: 0, key: key, value: nil, timestamp: IntakeFixtures.now)
                let event = try? decoder.decode(
                    record, now: IntakeFixtures.now, header: { _ in nil })
                let body = event?.payload.map { String(decoding: $0.body, as: UTF8.self) }
                #expect(
                    body == text.map { #"{"aps":{"alert":"\#($0)"},"k":"of \#($0)"}"# })
                for number in 0...1 {
                    var record = record
                    record.binding = number
                    let subject = decoder.subject(ofUnreadable: record, header: { _ in nil })
                    #expect(subject == Array((text ?? "").utf8))
                }
            }
        }
        // Those of an integer are its own.
        #expect(try Self.outcome(Self.mark + [0x41], Self.binding(.int32)) == "-272908479")
    }

    @Test func `a key that is too long for its fields to be read is not called damaged`() throws {
        let long = Array((#"{"id":""# + String(repeating: "x", count: 1 << 17) + #""}"#).utf8)
        let found = try Self.outcome(long, Self.binding(.json, "door-{key:/id}"))
        #expect(
            found.hasPrefix("invalidJSON: ")
                && found.hasSuffix("it has \(long.count) bytes, and the most is 131072"),
            "\(found)")
    }

    @Test func `a key of eight bytes without a schema's number may be an integer`() throws {
        let key: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 42]
        let avro = Self.binding(.schema(.avro))
        let found = try Self.outcome(key, avro)
        #expect(found.hasPrefix("schemaFrame: ") && found.contains("keySchema: int64"), "\(found)")
        #expect(try !Self.outcome(key + [0], avro).contains("int64"))
    }

    @Test func `a key that is not read makes no dead letter`() throws {
        func binding(
            _ format: KeyFormat?, _ change: (inout TopicBinding) -> Void = { _ in }
        ) -> TopicBinding {
            Self.binding(format, "door-{/id}") {
                $0.decode = .json
                change(&$0)
            }
        }
        let broken = Array("{\"id\":".utf8)
        let formats: [(KeyFormat, String)] = [
            (.json, "invalidJSON: "), (.int64, "invalidKey: "), (.int32, "invalidKey: "),
            (.schema(.avro), "schemaFrame: "),
        ]
        for (format, code) in formats {
            #expect(try Self.outcome(broken, binding(format), #"{"id":1}"#) == "door-1")
            let inPush = binding(format) {
                $0.push.payload = try! PushTemplate(
                    .map([("aps", .map([("alert", .text("{key}"))]))]))
            }
            #expect(try Self.outcome(broken, inPush, #"{"id":1}"#).hasPrefix(code))
        }
        #expect(try Self.outcome(Array("1234".utf8), binding(.int32), #"{"id":1}"#) == "door-1")
    }

    @Test(arguments: [#"{"id":"#, "door-42"])
    func `a key that cannot be read makes no dead letter of a record that is left out`(
        key: String
    ) throws {
        let key = Array(key.utf8)
        for format in [.json, nil] as [KeyFormat?] {
            let rows = Self.binding(format, "door-{key:/id}") {
                $0.decode = .debezium
                $0.conditions = [.init(field: FieldPath("/a")!, tests: [.above(0)])]
            }
            func change(_ op: String, _ number: Int) -> String {
                #"{"op":"\#(op)","before":null,"after":{"a":\#(number)}}"#
            }
            #expect(try Self.outcome(key, rows, change("r", 1)) == "filtered")
            #expect(try Self.outcome(key, rows, change("c", 0)) == "filtered")
            #expect(try Self.outcome(key, rows, change("c", 1)).hasPrefix("invalidJSON: "))
            // A condition on the key cannot be judged.
            var asking = rows
            asking.conditions.append(.init(field: FieldPath("key:/id")!, tests: [.exists(true)]))
            #expect(try Self.outcome(key, asking, change("c", 0)).hasPrefix("invalidJSON: "))
        }
    }

    @Test func `fields of a key in JSON are read beneath its schema`() throws {
        let fields = Self.binding(.json, "door-{key:/id}")
        for key in [#"{"id":42}"#, #"{"schema":{"type":"struct"},"payload":{"id":42}}"#] {
            #expect(try Self.outcome(Array(key.utf8), fields) == "door-42")
        }
    }

    @Test func `a format of keys needs a subject only where the value may name one`() {
        #expect(Self.binding(.int64, nil).ownProblem == nil)
        #expect(Self.binding(.json, nil).ownProblem == nil)
        #expect(Self.binding(.int64, nil) { $0.decode = .json }.ownProblem == .noSubjectOfSchema)
        #expect(Self.binding(.json) { $0.decode = .cloudevents }.ownProblem == .noSubjectOfSchema)
        #expect(!Self.binding(.int32).hasSchema && Self.binding(.schema(.avro)).hasSchema)
    }
}
