// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A message of Protobuf as JSON` {
    private static func one(_ type: String) -> String {
        "syntax = \"proto3\"; message M { \(type) a_field = 1; } enum E { ZERO = 0; ONE = 1; OLD = -1; }"
    }

    private static let forms: [(String, ProtobufBytes, String)] = [
        ("int32", ProtobufBytes().varint(1, -1), "-1"),
        ("int32", ProtobufBytes().varint(1, 1 << 40 | 5), "5"),
        ("int64", ProtobufBytes().varint(1, .min), "-9223372036854775808"),
        ("uint64", ProtobufBytes().varint(1, -1), "18446744073709551615"),
        ("uint32", ProtobufBytes().varint(1, -1), "4294967295"),
        ("sint32", ProtobufBytes().varint(1, 3), "-2"),
        ("sint64", ProtobufBytes().varint(1, -1), "-9223372036854775808"),
        ("fixed32", ProtobufBytes().fixed32(1, .max), "4294967295"),
        ("sfixed32", ProtobufBytes().fixed32(1, .max), "-1"),
        ("fixed64", ProtobufBytes().fixed64(1, .max), "18446744073709551615"),
        ("sfixed64", ProtobufBytes().fixed64(1, .max), "-1"),
        ("double", ProtobufBytes().fixed64(1, (1.25).bitPattern), "1.25"),
        ("double", ProtobufBytes().fixed64(1, Double.nan.bitPattern), #""NaN""#),
        ("float", ProtobufBytes().fixed32(1, (-Float.infinity).bitPattern), #""-Infinity""#),
        ("float", ProtobufBytes().fixed32(1, Float(0.1).bitPattern), "0.1"),
        ("bool", ProtobufBytes().varint(1, 2), "true"),
        ("string", ProtobufBytes().string(1, "é\""), #""é\"""#),
        ("bytes", ProtobufBytes().bytes(1, [0xFF]), #""/w==""#),
        ("E", ProtobufBytes().varint(1, 1), #""ONE""#),
        ("E", ProtobufBytes().varint(1, -1), #""OLD""#), ("E", ProtobufBytes().varint(1, 7), "7"),
        (
            "repeated int32", ProtobufBytes().varint(1, 1).bytes(1, [2, 3]).varint(1, 4),
            "[1,2,3,4]"
        ),
        (
            "repeated string", ProtobufBytes().string(1, "a").varint(9, 1).string(1, "b"),
            #"["a","b"]"#
        ),
        ("int32", ProtobufBytes().varint(1, 1).varint(1, 2), "2"),
        ("M", ProtobufBytes().bytes(1, []), "{}"),
    ]

    @Test(arguments: forms)
    func `each type has its form in JSON`(type: String, value: ProtobufBytes, json: String) throws {
        #expect(try ProtobufFixture.json(Self.one(type), value) == "{\"aField\":\(json)}")
    }

    @Test func `what is not on the wire is absent, and what is unknown is passed over`() throws {
        #expect(try ProtobufFixture.json(Self.one("int32"), ProtobufBytes()) == "{}")
        let unknown = ProtobufBytes().string(7, "x").fixed32(8, 1).fixed64(9, 1).tag(10, 3)
            .varint(1, 5).tag(11, 3).tag(11, 4).tag(10, 4).string(1, "another wire type")
        #expect(try ProtobufFixture.json(Self.one("int32"), unknown) == "{}")
        #expect(
            try ProtobufFixture.json(Self.one("int32"), unknown.varint(1, 6)) == #"{"aField":6}"#)
    }

    private static let maps: [(String, ProtobufBytes, String)] = [
        ("map<string, int32>", ProtobufBytes().string(1, "k").varint(2, 5), #"{"k":5}"#),
        ("map<int64, string>", ProtobufBytes().varint(1, -3), #"{"-3":""}"#),
        ("map<bool, E>", ProtobufBytes(), #"{"false":"ZERO"}"#),
        ("map<string, M>", ProtobufBytes().string(1, "é"), #"{"é":{}}"#),
        ("map<string, double>", ProtobufBytes().varint(2, 5), #"{"":0.0}"#),
    ]

    @Test(arguments: maps)
    func `a map is an object, with defaults for what an entry lacks`(
        type: String, entry: ProtobufBytes, json: String
    ) throws {
        #expect(
            try ProtobufFixture.json(Self.one(type), ProtobufBytes().message(1, entry))
                == "{\"aField\":\(json)}")
    }

    @Test func `the last of a oneof counts, and parts of a message are put together`() throws {
        let schema = """
            syntax = "proto3";
            message M { oneof kind { int32 a = 1; string b = 2; M c = 3; } M m = 4; repeated int32 r = 5; }
            """
        #expect(
            try ProtobufFixture.json(schema, ProtobufBytes().varint(1, 1).string(2, "x"))
                == #"{"b":"x"}"#)
        #expect(
            try ProtobufFixture.json(
                schema, ProtobufBytes().varint(1, 1).string(2, "x").varint(1, 3)) == #"{"a":3}"#)
        #expect(
            try ProtobufFixture.json(
                schema, ProtobufBytes().varint(1, 1).string(2, "x"), pointers: ["/a"]) == "{}")
        let parts = ProtobufBytes().message(4, ProtobufBytes().varint(5, 1).varint(1, 1))
            .varint(5, 9).message(4, ProtobufBytes().varint(5, 2).string(2, "y"))
        #expect(try ProtobufFixture.json(schema, parts) == #"{"m":{"r":[1,2],"b":"y"},"r":[9]}"#)
    }

    private static let wellKnown: [(String, ProtobufBytes, String)] = [
        ("Timestamp", ProtobufBytes(), #""1970-01-01T00:00:00Z""#),
        (
            "Timestamp", ProtobufBytes().varint(1, -1).varint(2, 1_000_000),
            #""1969-12-31T23:59:59.001Z""#
        ),
        (
            "Timestamp", ProtobufBytes().varint(1, 253_402_300_799).varint(2, 999_999_999),
            #""9999-12-31T23:59:59.999999999Z""#
        ),
        (
            "Timestamp", ProtobufBytes().varint(1, -62_135_596_800).varint(2, 1000),
            #""0001-01-01T00:00:00.000001Z""#
        ),
        ("Timestamp", ProtobufBytes().varint(1, 951_782_400), #""2000-02-29T00:00:00Z""#),
        ("Duration", ProtobufBytes().varint(1, -3).varint(2, -500_000_000), #""-3.500s""#),
        ("Duration", ProtobufBytes().varint(2, -1), #""-0.000000001s""#),
        ("Int64Value", ProtobufBytes(), "0"), ("Int64Value", ProtobufBytes().varint(1, 7), "7"),
        ("StringValue", ProtobufBytes().string(1, "s"), #""s""#),
        ("BoolValue", ProtobufBytes(), "false"),
        ("FieldMask", ProtobufBytes().string(1, "a_b.c_d").string(1, "e"), #""aB.cD,e""#),
        ("Empty", ProtobufBytes(), "{}"),
        (
            "Any", ProtobufBytes().string(1, "t/x").bytes(2, [1]),
            #"{"typeUrl":"t/x","value":"AQ=="}"#
        ),
        (
            "Struct",
            ProtobufBytes().message(
                1,
                ProtobufBytes().string(1, "k").message(
                    2,
                    ProtobufBytes().message(
                        6,
                        ProtobufBytes().message(1, ProtobufBytes().varint(1, 0))
                            .message(1, ProtobufBytes().fixed64(2, (1.5).bitPattern))
                            .message(1, ProtobufBytes().varint(4, 1))
                            .message(1, ProtobufBytes().message(5, ProtobufBytes()))
                            .message(1, ProtobufBytes().string(3, "v"))))),
            #"{"k":[null,1.5,true,{},"v"]}"#
        ),
        ("NullValue", ProtobufBytes(), "null"),
    ]

    @Test(arguments: wellKnown)
    func `well-known types have forms of their own`(
        type: String, content: ProtobufBytes, json: String
    ) throws {
        let files = ["timestamp", "duration", "wrappers", "struct", "field_mask", "empty", "any"]
        let schema =
            files.map { "import \"google/protobuf/\($0).proto\";" }.joined()
            + "message M { optional google.protobuf.\(type) a_field = 1; }"
        let value =
            type == "NullValue"
            ? ProtobufBytes().varint(1, 0) : ProtobufBytes().message(1, content)
        #expect(try ProtobufFixture.json(schema, value) == "{\"aField\":\(json)}")
    }

    @Test(arguments: [
        (ProtobufBytes(), "0"), (ProtobufBytes().bytes(1, [0x0F, 0x3C]), "3900"),
        (ProtobufBytes().bytes(1, [0x0F, 0x3C]).varint(2, 4).varint(3, 2), "39.00"),
        (ProtobufBytes().varint(3, 2).bytes(1, [0xFB]), "-0.05"),
        (ProtobufBytes().bytes(1, [0x27]).varint(3, -2), "3900"),
        (ProtobufBytes().varint(3, 3), "0.000"), (ProtobufBytes().varint(3, -3), "0"),
        (ProtobufBytes().bytes(1, [1]).bytes(1, [2]).varint(3, 1).varint(3, 0), "2"),
        (ProtobufBytes().bytes(1, [7]).string(4, "later"), "7"),
        (
            ProtobufBytes().bytes(1, [0x00, 0x8A, 0xC7, 0x23, 0x04, 0x89, 0xE7, 0xFF, 0xFF]),
            "9999999999999999999"
        ),
        (
            ProtobufBytes().bytes(1, [0xFF]).varint(3, 1000),
            "-0." + String(repeating: "0", count: 999) + "1"
        ),
    ])
    func `Confluent's decimals are their digits`(content: ProtobufBytes, digits: String) throws {
        let schema = """
            import "confluent/type/decimal.proto";
            message M { optional confluent.type.Decimal price = 1; repeated confluent.type.Decimal all = 2; }
            """
        let value = ProtobufBytes().message(1, content).message(2, content).message(2, content)
        #expect(
            try ProtobufFixture.json(schema, value)
                == "{\"price\":\"\(digits)\",\"all\":[\"\(digits)\",\"\(digits)\"]}")
    }

    @Test func `a decimal in parts, and one in a map`() throws {
        let schema = """
            import "confluent/type/decimal.proto";
            message M { optional confluent.type.Decimal price = 1; map<string, confluent.type.Decimal> by = 2; }
            """
        let value = ProtobufBytes().message(1, ProtobufBytes().bytes(1, [0x0F, 0x3C]))
            .message(1, ProtobufBytes().varint(3, 2))
            .message(2, ProtobufBytes().string(1, "k").message(2, ProtobufBytes().bytes(1, [7])))
            .message(2, ProtobufBytes().string(1, "none"))
        #expect(
            try ProtobufFixture.json(schema, value)
                == #"{"price":"39.00","by":{"k":"7","none":"0"}}"#)
    }

    @Test(arguments: [
        ProtobufBytes().varint(3, 1001), ProtobufBytes().varint(3, -1001),
        ProtobufBytes().varint(3, Int64(Int32.max)), ProtobufBytes().varint(3, Int64(Int32.min)),
        ProtobufBytes().bytes(1, [UInt8](repeating: 1, count: 129)),
    ])
    func `a decimal beyond the bounds is refused`(content: ProtobufBytes) throws {
        let schema = """
            import "confluent/type/decimal.proto";
            message M { optional confluent.type.Decimal price = 1; }
            """
        #expect(
            try ProtobufFixture.json(schema, ProtobufBytes().message(1, content))
                == "a decimal has more than 128 bytes, or a scale beyond ±1000, at /price")
    }

    @Test(arguments: [
        (["/a"], #"{"a":1}"#), (["/m/b"], #"{"m":{"b":"x"}}"#), (["/r/0/a"], #"{"r":[{"a":2}]}"#),
        (["/map/k"], #"{"map":{"k":1}}"#), (["/w"], #"{"w":3}"#), (["/none"], "{}"), ([], "{}"),
    ])
    func `only what the pointers name is written`(pointers: [String], json: String) throws {
        let schema = """
            import "google/protobuf/wrappers.proto";
            message M {
              optional int32 a = 1; optional string b = 2; optional M m = 3; repeated M r = 4;
              map<string, int32> map = 5; optional google.protobuf.Int32Value w = 6;
            }
            """
        let entry = ["j", "k", "l"].map { ProtobufBytes().string(1, $0).varint(2, 1) }
        let value = ProtobufBytes().varint(1, 1).string(2, "y")
            .message(3, ProtobufBytes().varint(1, 5).string(2, "x"))
            .message(4, ProtobufBytes().varint(1, 2)).message(4, ProtobufBytes().varint(1, 3))
            .message(5, entry[0]).message(5, entry[1]).message(5, entry[2])
            .message(6, ProtobufBytes().varint(1, 3))
        #expect(try ProtobufFixture.json(schema, value, pointers: pointers) == json)
    }
}

@Suite struct `A hostile message of Protobuf` {
    private static let schema = """
        message M { optional string s = 1; optional M m = 2; repeated int32 r = 3; map<string, M> p = 4; }
        """

    private static let refused: [(ProtobufBytes, String)] = [
        (ProtobufBytes(bytes: [0x0A]), "the value ends too early, at the top"),
        (ProtobufBytes(bytes: [0x0A, 0x05, 0x61]), "the value ends too early, at the top"),
        (
            ProtobufBytes().tag(1, 2).raw([UInt8](repeating: 0xFF, count: 9) + [1]),
            "the value ends too early, at the top"
        ),
        (
            ProtobufBytes().raw([UInt8](repeating: 0xFF, count: 11)),
            "a variable-length integer has more than 64 bits, at the top"
        ),
        (ProtobufBytes(bytes: [0, 0]), "a field's number is not in 1 to 536870911, at the top"),
        (
            ProtobufBytes().raw(AvroBytes.varint(1 << 35)),
            "a field's number is not in 1 to 536870911, at the top"
        ),
        (ProtobufBytes().tag(9, 6), "a field has a wire type that there is not, at the top"),
        (ProtobufBytes().tag(9, 4), "a group ends that has not begun, at the top"),
        (ProtobufBytes().tag(9, 3).tag(8, 4), "a group ends that has not begun, at the top"),
        (ProtobufBytes().tag(9, 3), "the value ends too early, at the top"),
        (ProtobufBytes().bytes(1, [0xFF]), "a string is not UTF-8, at /s"),
        (
            ProtobufBytes().message(2, ProtobufBytes().bytes(1, [0xFF])),
            "a string is not UTF-8, at /m/s"
        ),
        (ProtobufBytes().bytes(3, [1, 0x80]), "the value ends too early, at /r/1"),
        (
            ProtobufBytes().message(4, ProtobufBytes().string(1, "secret").bytes(2, [0x0A])),
            "the value ends too early, at /p/*"
        ),
    ]

    @Test(arguments: refused)
    func `is refused with the place and without its content`(
        value: ProtobufBytes, problem: String
    ) throws {
        #expect(try ProtobufFixture.json(Self.schema, value) == problem)
    }

    @Test func `nesting is bounded, of messages and of groups`() throws {
        func nested(_ depth: Int) -> ProtobufBytes {
            (1..<depth).reduce(ProtobufBytes()) { inner, _ in ProtobufBytes().message(2, inner) }
        }
        #expect(try ProtobufFixture.json(Self.schema, nested(60)).hasPrefix("{"))
        #expect(
            try ProtobufFixture.json(Self.schema, nested(61))
                .hasPrefix("the value nests deeper than 60, at /m/m"))
        let groups = (1...100).reduce(ProtobufBytes()) { all, _ in all.tag(9, 3) }
        #expect(
            try ProtobufFixture.json(Self.schema, groups)
                == "the value nests deeper than 60, at the top")
    }

    @Test func `fields that alternate again and again cost a bounded time`() throws {
        let fields = (1...500).map { "repeated int32 f\($0) = \($0);" }.joined()
        let round = (1...500).reduce(ProtobufBytes()) { $0.varint($1, 1) }
        let value = ProtobufBytes(
            bytes: [[UInt8]](repeating: round.bytes, count: 200).flatMap { $0 })
        #expect(
            try ProtobufFixture.json("message M { \(fields) }", value)
                .hasPrefix("the value has far more parts than its bytes can hold"))
    }

    @Test func `messages of many fields are read in whatever order these come`() throws {
        let fields = (1...400).map { "optional int32 f\($0) = \($0);" }.joined()
        let schema = "message M { repeated N n = 1; } message N { \(fields) }"
        for numbers in [Array(1...400), Array((1...400).reversed())] {
            let inner = numbers.reduce(ProtobufBytes()) { $0.varint($1, Int64($1)) }
            let value = (1...50).reduce(ProtobufBytes()) { all, _ in all.message(1, inner) }
            let json = try ProtobufFixture.json(schema, value)
            #expect(json.hasPrefix(#"{"n":[{"f"#) && json.contains(#""f400":400"#))
        }
    }

    @Test func `times that there are not are refused`() throws {
        for (type, field) in [("Timestamp", 253_402_300_800), ("Duration", 315_576_000_001)] {
            let schema = """
                import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
                message M { optional google.protobuf.\(type) t = 1; }
                """
            let value = ProtobufBytes().message(1, ProtobufBytes().varint(1, Int64(field)))
            #expect(try ProtobufFixture.json(schema, value).hasSuffix(", at /t"))
            let nanos = ProtobufBytes().message(1, ProtobufBytes().varint(2, 1_000_000_000))
            #expect(try ProtobufFixture.json(schema, nanos).hasSuffix(", at /t"))
        }
    }
}
