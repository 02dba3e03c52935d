// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A record with a schema` {
    private static let avro = try! RecordSchema(
        SchemaText(
            language: .avro,
            text: Array(
                #"{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}"#
                    .utf8)))
    private static let protobuf = try! RecordSchema(
        SchemaText(
            language: .protobuf,
            text: Array("message A { message B { optional int32 b = 1; } } message C {}".utf8)))

    /// A decoder, and how often it has asked for a schema.
    private final class Trial {
        var asked: [SchemaID] = []
        var answer = SchemaAnswer.pending

        func decode(
            _ decoder: inout RecordDecoder, _ bytes: [UInt8], as language: SchemaLanguage = .avro,
            projection: Int = 0
        ) -> String {
            decoder.begin()
            return bytes.withUnsafeBytes { bytes in
                do throws(UndecodableRecord) {
                    let decoded = try decoder.decode(bytes, as: language, projection: projection) {
                        asked.append($0)
                        return answer
                    }
                    switch decoded {
                    case .json(let json): return String(decoding: json, as: UTF8.self)
                    case .waiting(let schema, let cause):
                        return "waits for \(schema): \(cause ?? "")"
                    }
                } catch { return "\(error.code): \(error.message)" }
            }
        }
    }

    private static func decoder() -> RecordDecoder {
        RecordDecoder(projections: [.whole, Projection(pointers: ["/b"])!])
    }

    @Test func `is decoded with the schema of its number, which is asked for once`() {
        let trial = Trial()
        var decoder = Self.decoder()
        let record: [UInt8] = [0, 0, 1, 0, 7, 2, 4]
        #expect(trial.decode(&decoder, record) == "waits for 65543: ")
        trial.answer = .unreachable("nobody listens")
        #expect(trial.decode(&decoder, record) == "waits for 65543: nobody listens")
        trial.answer = .known(Self.avro)
        for _ in 0..<3 {
            #expect(trial.decode(&decoder, record) == #"{"a":1,"b":2}"#)
            #expect(trial.decode(&decoder, record, projection: 1) == #"{"b":2}"#)
        }
        #expect(trial.asked == [SchemaID](repeating: SchemaID(rawValue: 65543), count: 4))
        decoder.forget()
        trial.answer = .unknown("schema 65543 is not in the registry")
        #expect(
            trial.decode(&decoder, record) == "unknownSchema: schema 65543 is not in the registry")
        trial.answer = .unusable("schema 65543: it is odd")
        #expect(trial.decode(&decoder, record) == "unusableSchema: schema 65543: it is odd")
    }

    @Test func `says what is wrong with it, and is not in the way of the next`() {
        let trial = Trial()
        trial.answer = .known(Self.avro)
        var decoder = Self.decoder()
        #expect(
            trial.decode(&decoder, [0, 0, 0, 0, 1, 2])
                == "content: the value ends too early, at /b")
        #expect(trial.decode(&decoder, [0, 0, 0, 0, 1, 2, 4]) == #"{"a":1,"b":2}"#)
        #expect(
            trial.decode(&decoder, [0, 0, 0, 0, 2, 0], as: .protobuf)
                == "unusableSchema: schema 2 is AVRO, and the records are read as PROTOBUF")
    }

    private static let identifier = [UInt8](repeating: 7, count: 16)
    private static let unframed: [([UInt8], String)] = [
        ([], "this one has 0 bytes"), ([0, 0, 0, 1], "this one has 4 bytes"),
        ([1, 0, 0, 0, 1, 0], "PrefixSchemaIdSerializer"),
        (Array(#"{"a":1}"#.utf8), "have the producer use a serializer for a schema registry"),
        (Array(#"["a",1]"#.utf8), "have the producer use a serializer for a schema registry"),
        (Array(#""door-42""#.utf8), "have the producer use a serializer for a schema registry"),
        ([3, 0] + identifier, "Confluent's API, or write JSON"),
        ([3, 5] + identifier, "Confluent's API, or write JSON"),
        (
            [0xC3, 1, 1, 2, 3, 4, 5, 6, 7, 8],
            "have the producer use a serializer for a schema registry"
        ),
        (Array("Obj\u{1}...".utf8), "write one record with a serializer for a schema registry"),
        ([2, 0, 0, 0, 1, 0], "have the producer use a serializer for a schema registry"),
    ]

    @Test(arguments: unframed)
    func `without Confluent's frame is refused`(record: [UInt8], problem: String) {
        var decoder = Self.decoder()
        for language in SchemaLanguage.allCases {
            let text = Trial().decode(&decoder, record, as: language)
            #expect(text.hasPrefix("frame: ") && text.hasSuffix(problem), "\(text)")
        }
        #expect(SchemaFrame.refusal(of: SchemaFrame.valueHeader).code == .frame)
    }

    @Test(
        arguments: [
            [0, 0, 0, 0, 0, 0, 0, 0, 13, 2, 4], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0],
        ] as [[UInt8]])
    func `with eight bytes of number is named as Apicurio's`(record: [UInt8]) {
        var decoder = Self.decoder()
        let trial = Trial()
        for language in SchemaLanguage.allCases {
            let text = trial.decode(&decoder, record, as: language)
            #expect(text.hasPrefix("frame: ") && text.contains("apicurio.registry.as-confluent"))
        }
        #expect(trial.asked.isEmpty, "no registry has a schema 0")
    }

    @Test(
        arguments: [
            ("apicurio.value.globalId", "x", "as-confluent"),
            ("apicurio.value.contentId", "x", "as-confluent"),
            ("apicurio.key.globalId", "x", "as-confluent"),
            ("apicurio.key.contentId", "x", "as-confluent"),
            ("content-type", "avro/binary+b7b4a7f09c964e4aa687fb5de9ef0c63", "Azure's registry"),
            ("content-type", "avro/binary", nil), ("content-type", "application/json", nil),
            ("content-type", "", nil), ("apicurio", "x", nil),
        ] as [(String, String, String?)])
    func `of another registry is named by its headers`(
        name: String, value: String, words: String?
    ) {
        var value = value
        let found = value.withUTF8 { bytes in
            SchemaFrame.refusal(ofHeaders: { $0 == name ? UnsafeRawBufferPointer(bytes) : nil })
        }
        #expect(found.map { $0.message.contains(words ?? "?") } == words.map { _ in true })
    }

    @Test func `of JSON Schema is what follows the frame, and needs no registry`() {
        let trial = Trial()
        var decoder = Self.decoder()
        let record = [0, 0, 0, 0, 9] + Array(#"{"x":1}"#.utf8)
        #expect(trial.decode(&decoder, record, as: .json) == #"{"x":1}"#)
        #expect(trial.asked.isEmpty)
    }

    @Test(arguments: [
        ([0] as [UInt8], "{}"), ([2, 0], "{}"), ([4, 0, 0, 0x08, 0x05], #"{"b":5}"#),
        ([2, 2], "{}"),
        ([2, 4], "unusableSchema: schema 3: it has no message at the place that the record names"),
    ])
    func `of Protobuf names its message`(content: [UInt8], json: String) {
        let trial = Trial()
        trial.answer = .known(Self.protobuf)
        var decoder = Self.decoder()
        #expect(trial.decode(&decoder, [0, 0, 0, 0, 3] + content, as: .protobuf) == json)
    }

    @Test(
        arguments: [
            [], [0x80], [1], [18], [2], [2, 1], [2, 0x80, 0x80, 0x08],
            [UInt8](repeating: 0xFF, count: 11),
        ] as [[UInt8]])
    func `of Protobuf with places that are none is refused`(content: [UInt8]) {
        var decoder = Self.decoder()
        #expect(
            Trial().decode(&decoder, [0, 0, 0, 0, 3] + content, as: .protobuf)
                .hasPrefix("frame: a Protobuf message with a schema begins with the places"))
    }

    @Test func `finds room for the schemas of any number of records`() {
        let trial = Trial()
        trial.answer = .known(Self.avro)
        var decoder = Self.decoder()
        for number in 0..<RecordDecoder.programsMax + 10 {
            let id = [0, 0, 0, UInt8((number + 1) >> 8), UInt8((number + 1) & 0xFF)]
            #expect(trial.decode(&decoder, id + [2, 4]) == #"{"a":1,"b":2}"#)
        }
        #expect(trial.asked.count == RecordDecoder.programsMax + 10)
        #expect(trial.decode(&decoder, [0, 0, 0, 0, 1, 2, 4]) == #"{"a":1,"b":2}"#)
        #expect(trial.asked.count == RecordDecoder.programsMax + 11)
    }
}
