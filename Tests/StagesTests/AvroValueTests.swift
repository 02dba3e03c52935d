// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A value of Avro as JSON` {
    private static let forms: [(String, AvroBytes, String)] = [
        (#""null""#, AvroBytes(), "null"),
        (#"{"type":"boolean"}"#, [1], "true"),
        ("\"int\"", AvroBytes().long(-2_147_483_648), "-2147483648"),
        ("long", AvroBytes().long(.min), "-9223372036854775808"),
        ("\"long\"", AvroBytes().long(.max), "9223372036854775807"),
        ("\"float\"", AvroBytes().float(0.1), "0.1"),
        ("\"double\"", AvroBytes().double(-2.5e300), "-2.5e+300"),
        ("\"double\"", AvroBytes().double(.nan), "null"),
        ("\"float\"", AvroBytes().float(-.infinity), "null"),
        ("\"bytes\"", AvroBytes().bytes([0xFB, 0xFF]), #""+/8=""#),
        ("\"string\"", AvroBytes().string("a\"\\\n\u{1}é"), #""a\"\\\u000a\u0001é""#),
        ("\"string\"", AvroBytes().string("eight letters, plain"), #""eight letters, plain""#),
        ("\"string\"", AvroBytes().string("eight \"letters"), #""eight \"letters""#),
        ("\"string\"", AvroBytes().string("eight \\letters"), #""eight \\letters""#),
        ("\"string\"", AvroBytes().string("eight \u{7}letters"), #""eight \u0007letters""#),
        (#"{"type":"fixed","name":"f","size":3}"#, [1, 2, 3], #""AQID""#),
        (#"{"type":"enum","name":"e","symbols":["A","B"]}"#, AvroBytes().long(1), #""B""#),
    ]

    @Test(arguments: forms)
    func `each type has its form in JSON`(schema: String, value: AvroBytes, json: String) throws {
        #expect(try AvroFixture.json(schema, value) == json)
    }

    private static let decimals: [([UInt8], Int, String)] = [
        ([0x30, 0x39] as [UInt8], 2, "123.45"), ([0xFF], 2, "-0.01"), ([], 0, "0"),
        ([], 3, "0.000"),
        ([0x80, 0, 0, 0, 0, 0, 0, 0, 0], 0, "-2361183241434822606848"),
        ([0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 10, "1844674407.3709551615"),
        ([0x3B, 0x9A, 0xCA, 0x00], 9, "1.000000000"), ([0, 0, 0, 5], 0, "5"),
    ]

    @Test(arguments: decimals)
    func `a decimal is a string of digits`(bytes: [UInt8], scale: Int, digits: String) throws {
        let logical = #""logicalType":"decimal","precision":30,"scale":\#(scale)"#
        #expect(
            try AvroFixture.json(#"{"type":"bytes",\#(logical)}"#, AvroBytes().bytes(bytes))
                == "\"\(digits)\"")
        guard !bytes.isEmpty else { return }
        #expect(
            try AvroFixture.json(
                #"{"type":"fixed","name":"d","size":\#(bytes.count),\#(logical)}"#,
                AvroBytes().raw(bytes)) == "\"\(digits)\"")
    }

    @Test func `a decimal without a usable precision is bytes`() throws {
        for logical in [
            #""logicalType":"decimal""#, #""logicalType":"decimal","precision":2,"scale":3"#,
            #""logicalType":"other""#,
        ] {
            #expect(
                try AvroFixture.json(#"{"type":"bytes",\#(logical)}"#, AvroBytes().bytes([1]))
                    == #""AQ==""#)
        }
    }

    @Test func `times and UUIDs are what they are on the wire or in their usual form`() throws {
        #expect(
            try AvroFixture.json(
                #"{"type":"long","logicalType":"timestamp-micros"}"#, AvroBytes().long(12))
                == "12")
        #expect(
            try AvroFixture.json(
                #"{"type":"fixed","size":16,"name":"u","logicalType":"uuid"}"#,
                AvroBytes().raw(Array(0..<16)))
                == #""00010203-0405-0607-0809-0a0b0c0d0e0f""#)
    }

    @Test func `unions are written without the branch, blocks of either kind one after the other`()
        throws
    {
        let schema = """
            {"type":"record","name":"r","fields":[
              {"name":"u","type":["null","string"]},
              {"name":"l","type":{"type":"array","items":"long"}},
              {"name":"m","type":{"type":"map","values":["null","int"]}}]}
            """
        let value = AvroBytes().long(1).string("x")
            .long(2).long(7).long(8).long(-1).long(1).long(9).long(0)
            .long(1).string("k\"").long(1).long(5).long(-1).long(3).string("n").long(0).long(0)
        #expect(
            try AvroFixture.json(schema, value) == #"{"u":"x","l":[7,8,9],"m":{"k\"":5,"n":null}}"#)
    }

    @Test func `a list of records that mention themselves is read to its end`() throws {
        let schema = """
            {"type":"record","name":"node","namespace":"a.b","fields":[
              {"name":"v","type":"int"},{"name":"next","type":["null","a.b.node"]}]}
            """
        #expect(
            try AvroFixture.json(schema, AvroBytes().long(1).long(1).long(2).long(0))
                == #"{"v":1,"next":{"v":2,"next":null}}"#)
    }
}

@Suite struct `What is wanted of a value of Avro` {
    private static let schema = """
        {"type":"record","name":"order","fields":[
          {"name":"id","type":"string"},
          {"name":"note","type":["null","string"]},
          {"name":"items","type":{"type":"array","items":{"type":"record","name":"item","fields":[
            {"name":"sku","type":"string"},{"name":"price","type":"double"},
            {"name":"tags","type":{"type":"map","values":"string"}}]}}},
          {"name":"customer","type":["null",{"type":"record","name":"customer","fields":[
            {"name":"a/b","type":"int"},{"name":"secret","type":"bytes"}]}]},
          {"name":"end","type":"int"}]}
        """

    private static let value: AvroBytes = {
        let items = ["x", "y", "z"].reduce(AvroBytes().string("o-1").long(0).long(3)) {
            $0.string($1).double(1.5).long(2).string("k").string("v").string("l").string("w").long(
                0)
        }
        return items.long(0).long(1).long(4).bytes([1, 2]).long(6)
    }()

    @Test(arguments: [
        (["/id"], #"{"id":"o-1"}"#), (["/end", "/note"], #"{"note":null,"end":6}"#),
        (["/customer/a~1b"], #"{"customer":{"a/b":4}}"#),
        (["/items/1/sku"], #"{"items":[{"sku":"x"},{"sku":"y"}]}"#),
        (
            ["/items/0/sku", "/items/0/tags/l"], #"{"items":[{"sku":"x","tags":{"l":"w"}}]}"#
        ),
        (
            ["/items/0/sku", "/items/1/price"],
            ##"{"items":[{"sku":"x","price":1.5},{"sku":"y","price":1.5}]}"##
        ),
        (["/items/x"], #"{"items":[]}"#), (["/none"], "{}"), ([], "{}"),
        (["/id/deeper"], #"{"id":"o-1"}"#),
        (["/customer", "/customer/secret"], #"{"customer":{"a/b":4,"secret":"AQI="}}"#),
    ])
    func `only what the pointers name is written`(pointers: [String], json: String) throws {
        #expect(try AvroFixture.json(Self.schema, Self.value, pointers: pointers) == json)
    }

    @Test func `a whole value is the same whether a pointer says so or none is given`() throws {
        let whole = try AvroFixture.json(Self.schema, Self.value)
        #expect(whole.hasSuffix(#","end":6}"#))
        #expect(try AvroFixture.json(Self.schema, Self.value, pointers: ["/id", ""]) == whole)
    }

    @Test(arguments: ["id", "/a~2", "/~"])
    func `what is no JSON pointer makes no projection`(pointer: String) {
        #expect(Projection(pointers: [pointer]) == nil)
    }
}
