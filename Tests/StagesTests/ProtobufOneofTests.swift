// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable import SchemaCodecs

@Suite struct `A oneof of Protobuf` {
    @Test func `a message of a oneof is put together only of the parts after the other field`()
        throws
    {
        let schema = """
            syntax = "proto3";
            message M { oneof kind { int32 a = 1; string b = 2; M c = 3; } M m = 4; repeated int32 r = 5; }
            """
        let value = ProtobufBytes().message(3, ProtobufBytes().varint(5, 1)).varint(1, 7)
            .message(3, ProtobufBytes().varint(5, 2))
            .message(3, ProtobufBytes().varint(5, 3).string(2, "y"))
        #expect(try ProtobufFixture.json(schema, value) == #"{"c":{"r":[2,3],"b":"y"}}"#)
    }
}
