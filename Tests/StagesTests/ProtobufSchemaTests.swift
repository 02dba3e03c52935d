// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A schema of Protobuf` {
    private static let order = #"""
        // A comment with { and "
        syntax = "proto3";
        package com.shop.v1;
        /* import "nothing.proto"; */
        import public "com/shop/money.proto";
        import "confluent/meta.proto";
        option java_package = "x";
        option (file_meta) = { tags: ["a", "}"] };
        message Unused { message First {} message Second { int32 in_second = 1; } }
        message Order {
          option deprecated = true;
          reserved 4, 10 to max;
          reserved "old", 'older';
          enum State { option allow_alias = true; NEW = 0; FRESH = 0; PAID = 1 [(note) = "x"]; }
          string order_id = 1 [(confluent.field_meta).tags = "PII", json_name = "ID"];
          State state = 2;
          .com.shop.Money total = 3;
          shop.Money tip = 5 [deprecated = true];
          map<string, Line> lines = 6;
          message Line { int32 count_of_2things = 1; Unused.Second other = 2; }
          oneof payment { option (x) = 1; string card = 7; Line cash_ = 8; }
          extensions 100 to 199 [declaration = { number: 100 }];
        }
        service Shop { rpc Get (Order) returns (stream Order) { option (http) = { get: "/" }; } }
        extend google.protobuf.FieldOptions { string note = 50000; }
        """#
    private static let money = """
        package com.shop;
        message Money { required sint64 units = 1; optional group Old = 2 { optional int32 a = 1; } }
        """

    @Test func `is read with all that .proto files have`() throws {
        let line = ProtobufBytes().varint(1, 3).message(2, ProtobufBytes().varint(1, 4))
        let value = ProtobufBytes().string(1, "o").varint(2, 0)
            .message(3, ProtobufBytes().varint(1, 4).tag(2, 3).varint(1, 1).tag(2, 4))
            .message(5, ProtobufBytes().varint(1, 1))
            .message(6, ProtobufBytes().string(1, "k").message(2, line)).message(8, line)
        #expect(
            try ProtobufFixture.json(
                Self.order, references: [("com/shop/money.proto", Self.money)], value, message: [1])
                == #"{"ID":"o","state":"NEW","total":{"units":2},"tip":{"units":-1},"#
                + #""lines":{"k":{"countOf2things":3,"other":{"inSecond":4}}},"#
                + #""cash":{"countOf2things":3,"other":{"inSecond":4}}}"#)
    }

    @Test func `has the messages that records name by their places`() throws {
        let schema = try ProtoParser.schema(
            Array(Self.order.utf8), references: [("com/shop/money.proto", Array(Self.money.utf8))])
        let names = [[0], [0, 1], [1], [1, 0]].map { path in
            schema.message(MessageIndexes(path: path)!).map { schema.messages[$0].fullName }
        }
        #expect(
            names == [
                "com.shop.v1.Unused", "com.shop.v1.Unused.Second", "com.shop.v1.Order",
                "com.shop.v1.Order.Line",
            ])
        #expect(schema.message(MessageIndexes(path: [2])!) == nil)
        #expect(schema.message(MessageIndexes(path: [0, 1, 0])!) == nil)
    }

    @Test func `takes the nearest of several types of one name`() throws {
        let schema = """
            package a.b;
            message M { message T { optional int32 near = 1; } optional T t = 1; optional .a.b.T far = 2; }
            message T { optional int32 far = 1; }
            """
        let inner = ProtobufBytes().varint(1, 1)
        #expect(
            try ProtobufFixture.json(schema, ProtobufBytes().message(1, inner).message(2, inner))
                == #"{"t":{"near":1},"far":{"far":1}}"#)
    }

    @Test func `of an edition is read like proto3`() throws {
        #expect(
            try ProtobufFixture.json(
                "edition = \"2023\"; message M { int32 a = 1 [features.field_presence = IMPLICIT]; }",
                ProtobufBytes().varint(1, 1)) == #"{"a":1}"#)
    }

    @Test(arguments: [
        ("message", "the Protobuf schema lacks the message's name, in line 1"),
        ("message M", "the Protobuf schema lacks { after the message's name, in line 1"),
        ("message M {", "the Protobuf schema lacks a field of M, in line 1"),
        ("message M { int32 }", "the Protobuf schema lacks the name of a field, in line 1"),
        (
            "message M {\n\n int32 a; }",
            "the Protobuf schema lacks = after the name of a field, in line 3"
        ),
        (
            "message M { int32 a = 0; }",
            "the Protobuf schema has a field without a number in 1 to 536870911, in line 1"
        ),
        (
            "message M { int32 a = 99999999999999999999; }",
            "the Protobuf schema has a field without a number in 1 to 536870911, in line 1"
        ),
        (
            "message M { int32 a = 1; int32 b = 1; }",
            "the Protobuf schema gives two fields of M the number 1, in line 1"
        ),
        (
            "message M { map<float, int32> a = 1; }",
            "the Protobuf schema has a map with keys that no map can have, in line 1"
        ),
        ("message M {} message M {}", "the Protobuf schema defines M twice, in line 1"),
        ("message M { Nothing a = 1; }", "the Protobuf schema does not define the type Nothing"),
        (
            "message M { int32 a = 1 [json_name = 3]; }",
            "the Protobuf schema has a json_name without a value, in line 1"
        ),
        (
            "enum E { A = 99999999999; }",
            "the Protobuf schema lacks the number of an enum's value, in line 1"
        ),
        ("/* open", "the Protobuf schema ends in a comment, in line 1"),
        ("import \"open", "the Protobuf schema has a string without an end, in line 1"),
        (
            "syntax = \"proto4\";",
            "the Protobuf schema has a syntax other than proto2 and proto3, in line 1"
        ),
        ("option x = {", "the Protobuf schema ends too early, in line 1"),
        ("option x = 1 }", "the Protobuf schema closes a block that is not open, in line 1"),
    ])
    func `that is none is refused with the line`(schema: String, problem: String) {
        #expect(ProtobufFixture.problem(schema) == problem)
    }

    @Test func `is bounded in nesting, names and parts`() {
        let deep = String(repeating: "message M { ", count: 33) + String(repeating: "}", count: 33)
        #expect(ProtobufFixture.problem(deep).contains("nests messages deeper than 32"))
        let name = String(repeating: "n", count: 1025)
        #expect(ProtobufFixture.problem("message \(name) {}").contains("more than 1024 bytes"))
        let fields = (1...50_001).map { "int32 f\($0) = \($0);" }.joined()
        #expect(
            ProtobufFixture.problem("message M { \(fields) }").contains("more than 50000 parts"))
        #expect(
            ProtobufFixture.problem(String(repeating: " ", count: SchemaLimits.textBytesMax + 1))
                .contains("bytes"))
    }

    // MARK: What registries leave out

    @Test(arguments: [
        ("google/type/money", "Money"), ("google/type/date", "Date"),
        ("google/type/latlng", "LatLng"), ("google/type/timeofday", "TimeOfDay"),
        ("google/type/datetime", "DateTime"), ("google/type/color", "Color"),
        ("google/type/dayofweek", "DayOfWeek"), ("google/type/month", "Month"),
        ("google/type/postal_address", "PostalAddress"), ("google/type/interval", "Interval"),
        ("google/type/decimal", "Decimal"), ("google/type/expr", "Expr"),
        ("google/type/fraction", "Fraction"), ("google/type/phone_number", "PhoneNumber"),
        ("google/type/calendar_period", "CalendarPeriod"),
        ("google/type/quaternion", "Quaternion"), ("google/type/localized_text", "LocalizedText"),
        ("google/protobuf/source_context", "SourceContext"), ("confluent/meta", "Meta"),
        ("confluent/type/decimal", "Decimal"),
    ])
    func `what serializers have built in needs no reference`(file: String, type: String) throws {
        let package = file.split(separator: "/").dropLast().joined(separator: ".")
        let schema = """
            syntax = "proto3"; import "\(file).proto";
            message M { string id = 1; \(package).\(type) m = 2; }
            """
        #expect(ProtobufFixture.problem(schema) == "")
        let json = try ProtobufFixture.json(schema, ProtobufBytes().string(1, "x"))
        #expect(json.hasPrefix(#"{"id":"x""#))
    }

    @Test(arguments: [
        "google.protobuf.FieldDescriptorProto", "shop.Lost", ".shop.Lost", "Lost",
        "repeated shop.Lost", "optional shop.Lost", "map<string, shop.Lost>",
        "google.type.Unheard", "buf.validate.Rule", "x.y.z.Lost",
    ])
    func `a type that nobody reads need not be known`(type: String) throws {
        let schema = """
            syntax = "proto3"; import "shop/lost.proto"; import "shop/other.proto";
            message M { string id = 1; \(type) m = 2; }
            """
        let value = ProtobufBytes().string(1, "x").string(2, "y")
        #expect(try ProtobufFixture.json(schema, value, pointers: ["/id"]) == #"{"id":"x"}"#)
        let problem = ProtobufFixture.problem(schema)
        #expect(problem.hasPrefix("the Protobuf schema does not define the type "))
        #expect(problem.hasSuffix("the import of shop/lost.proto, shop/other.proto"))
    }

    @Test func `edition 2024 may say who sees a type`() throws {
        let schema = """
            edition = "2024"; export message M { local enum E { A = 0; } export message N {}
            string export = 1; string local = 2; } local enum F { B = 0; } local message L {}
            """
        let value = ProtobufBytes().string(1, "x").string(2, "y")
        #expect(try ProtobufFixture.json(schema, value) == #"{"export":"x","local":"y"}"#)
    }
}
