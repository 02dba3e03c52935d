// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A hostile value of Avro` {
    private static let refused: [(String, [UInt8], String)] = [
        ("\"long\"", [0xFF] as [UInt8], "the value ends too early, at the top"),
        (
            "\"long\"", [UInt8](repeating: 0x80, count: 10) + [0],
            "a variable-length integer has more than 64 bits, at the top"
        ),
        (
            "\"int\"", AvroBytes().long(1 << 31).bytes,
            "an integer is beyond its type's range, at the top"
        ),
        ("\"string\"", AvroBytes().long(-1).bytes, "a length or a count is negative, at the top"),
        ("\"string\"", AvroBytes().long(.max).bytes, "the value ends too early, at the top"),
        ("\"string\"", [2, 0xFF], "a string is not UTF-8, at the top"),
        ("\"boolean\"", [2], "a boolean is neither 0 nor 1, at the top"),
        (#"["null"]"#, [2], "the union has no branch of this number, at the top"),
        (#"["null"]"#, [1], "the union has no branch of this number, at the top"),
        (
            #"{"type":"enum","name":"e","symbols":["A"]}"#, [2],
            "the enum has no symbol of this number, at the top"
        ),
        ("\"int\"", [0, 0], "the value goes on after its end"),
        (
            #"{"type":"array","items":"int"}"#, AvroBytes().long(.min).long(0).long(0).bytes,
            "the value ends too early, at /1"
        ),
        (
            #"{"type":"array","items":"int"}"#, AvroBytes().long(-1).long(-1).bytes,
            "a length or a count is negative, at the top"
        ),
        (
            #"{"type":"array","items":"int"}"#, AvroBytes().long(-1).long(2).raw([2, 2, 0]).bytes,
            "a block of items has another size than it says, at the top"
        ),
        (
            #"{"type":"array","items":"null"}"#, AvroBytes().long(.max).long(0).bytes,
            "the value has far more parts than its bytes can hold, at /65711"
        ),
        (
            #"{"type":"map","values":"int"}"#,
            AvroBytes().long(1).string("secret").raw([0xFF]).bytes,
            "the value ends too early, at /*"
        ),
    ]

    @Test(arguments: refused)
    func `is refused with the place and without its content`(
        schema: String, value: [UInt8], problem: String
    ) throws {
        #expect(try AvroFixture.json(schema, AvroBytes().raw(value)) == problem)
    }

    @Test func `a place names fields and items`() throws {
        let schema = """
            {"type":"record","name":"r","fields":[{"name":"items","type":{"type":"array","items":
              {"type":"record","name":"i","fields":[{"name":"sku","type":"string"}]}}}]}
            """
        let value = AvroBytes().long(2).string("x").long(900)
        #expect(
            try AvroFixture.json(schema, value) == "the value ends too early, at /items/1/sku")
        #expect(
            try AvroFixture.json(schema, value, pointers: [])
                == "the value ends too early, at /items/*/sku")
    }

    @Test func `nesting is bounded whether it is written or passed over`() throws {
        let schema = """
            {"type":"record","name":"n","fields":[{"name":"next","type":["null","n"]},
              {"name":"x","type":"null"}]}
            """
        func value(_ depth: Int) -> AvroBytes {
            AvroBytes().raw([UInt8](repeating: 2, count: depth - 1) + [0])
        }
        #expect(try AvroFixture.json(schema, value(60)).hasPrefix("{"))
        for pointers in [[""], ["/x"]] {
            #expect(
                try AvroFixture.json(schema, value(61), pointers: pointers)
                    .hasPrefix("the value nests deeper than 60, at /next/next"))
        }
    }

    @Test func `a record that contains itself has no value, and takes no time`() throws {
        let schema = #"{"type":"record","name":"n","fields":[{"name":"a","type":"n"}]}"#
        #expect(try AvroFixture.json(schema, []).hasPrefix("the value nests deeper"))
        #expect(try AvroFixture.json(schema, [], pointers: []).hasPrefix("the value nests deeper"))
    }

    @Test func `records that double in number without a byte are held`() throws {
        let levels = (1...40).map { level in
            #"{"type":"record","name":"l\#(level)","fields":[{"name":"a","type":"l\#(level - 1)"},"#
                + #"{"name":"b","type":"l\#(level - 1)"}]}"#
        }
        let references = [#"{"type":"record","name":"l0","fields":[]}"#] + levels
        for pointers in [[""], []] {
            let problem = try AvroFixture.json(
                #"{"type":"record","name":"r","fields":[{"name":"f","type":"l40"}]}"#,
                references: references, [], pointers: pointers)
            #expect(
                problem.hasPrefix("the value has far more parts than its bytes can hold, at /f"))
        }
    }

    @Test func `what is larger than the bound as JSON is refused`() throws {
        let text = String(repeating: "x", count: 100)
        #expect(
            try AvroFixture.json("\"string\"", AvroBytes().string(text), bytesMax: 102)
                == "\"\(text)\"")
        #expect(
            try AvroFixture.json("\"string\"", AvroBytes().string(text), bytesMax: 101)
                == "the value is too large as JSON")
    }

    @Test func `a decimal of any length is not computed`() throws {
        let schema = #"{"type":"bytes","logicalType":"decimal","precision":4}"#
        let most = [UInt8](repeating: 0x7F, count: SchemaLimits.decimalBytesMax)
        #expect(try AvroFixture.json(schema, AvroBytes().bytes(most)).count == 310)
        #expect(
            try AvroFixture.json(schema, AvroBytes().bytes(most + [1]))
                == "a decimal has more than 128 bytes, or a scale beyond ±1000, at the top")
    }
}

@Suite struct `A hostile schema of Avro` {
    @Test(arguments: [
        ("", "the Avro schema is no JSON: Empty: no JSON found"),
        ("{}", "an Avro type has no member type"),
        ("3", "the type 3 is not defined"),
        ("[1]", "an Avro type is a name, a union or an object"),
        ("nothing", "the type nothing is not defined"),
        (#"{"type":"array"}"#, "an array has no items"),
        (#"{"type":"map"}"#, "a map has no values"),
        (#"[["null"]]"#, "a union is directly in a union"),
        (#"{"type":"record","fields":[]}"#, "a named Avro type has no name"),
        (#"{"type":"record","name":"r"}"#, "the record r has no fields"),
        (
            #"{"type":"record","name":"r","fields":[{"name":"a"}]}"#,
            "a field of r has no name or no type"
        ),
        (
            #"{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#,
            "the record r has a field twice"
        ),
        (#"{"type":"enum","name":"n.e","symbols":[]}"#, "the enum n.e has no symbols"),
        (#"{"type":"fixed","name":"f","size":-1}"#, "the fixed f has no size"),
        (
            #"{"type":"fixed","name":"string","size":1}"#,
            "string is defined, and is a type of Avro's own"
        ),
        (
            #"[{"type":"fixed","name":"f","size":1},{"type":"fixed","name":"f","size":1}]"#,
            "the type f is defined twice"
        ),
        (
            #"{"type":"record","name":"r","fields":[{"name":"a","type":"later"}]}"#,
            "the type later is not defined"
        ),
    ])
    func `is refused with one sentence`(schema: String, problem: String) {
        #expect(AvroFixture.problem(schema) == problem)
    }

    @Test func `nesting, names and parts are bounded`() {
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        #expect(AvroFixture.problem(deep).contains("no JSON"))
        let name = String(repeating: "n", count: 1025)
        #expect(AvroFixture.problem("{\"type\":\"\(name)\"}") == "a name has more than 1024 bytes")
        let parts = String(repeating: "\"int\",", count: SchemaLimits.partsMax / 2)
        #expect(
            AvroFixture.problem("[\(parts)\"int\"]") == "the schema has more than 50000 parts")
    }

    @Test func `a long chain of records takes no stack`() throws {
        let links = (1...10_000).map {
            #"{"type":"record","name":"r\#($0)","fields":[{"name":"a","type":"r\#($0 - 1)"}]}"#
        }
        let chain =
            #"[{"type":"record","name":"r0","fields":[]},"# + links.joined(separator: ",") + "]"
        #expect(try AvroFixture.json(chain, AvroBytes().long(20)).hasPrefix(#"{"a":{"a":"#))
    }
}

@Suite struct `A schema of Avro that mentions others` {
    @Test func `takes their named types, by full names and by its own namespace`() throws {
        let money = """
            {"type":"record","name":"Money","namespace":"com.shop","fields":[
              {"name":"units","type":"long"},{"name":"currency","type":"Currency"}]}
            """
        let currency = #"{"type":"enum","name":"com.shop.Currency","symbols":["EUR","USD"]}"#
        let order = """
            {"type":"record","name":"Order","namespace":"com.shop","aliases":["Bestellung"],"fields":[
              {"name":"total","type":"Money"},{"name":"was","type":["null","com.shop.Money"],
               "default":null}]}
            """
        #expect(
            try AvroFixture.json(
                order, references: [currency, money],
                AvroBytes().long(7).long(1).long(1).long(8).long(0))
                == #"{"total":{"units":7,"currency":"USD"},"was":{"units":8,"currency":"EUR"}}"#)
        #expect(
            AvroFixture.problem(order, references: [currency]) == "the type Money is not defined")
    }
}
