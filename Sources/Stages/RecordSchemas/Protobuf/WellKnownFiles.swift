// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The .proto files that a registry leaves out of a schema's references, since every compiler has them.
/// Only names, types and numbers are here, which are fixed for ever.
enum WellKnownFiles {
    static func text(_ name: String) -> String? {
        switch name {
        case "google/protobuf/timestamp.proto": google("message Timestamp" + secondsAndNanos)
        case "google/protobuf/duration.proto": google("message Duration" + secondsAndNanos)
        case "google/protobuf/empty.proto": google("message Empty {}")
        case "google/protobuf/any.proto":
            google("message Any { string type_url = 1; bytes value = 2; }")
        case "google/protobuf/field_mask.proto":
            google("message FieldMask { repeated string paths = 1; }")
        case "google/protobuf/wrappers.proto":
            google(
                wrapped.map { "message \($0.name) { \($0.type) value = 1; }" }
                    .joined(separator: "\n"))
        case "google/protobuf/struct.proto": google(structures)
        case "confluent/type/decimal.proto":
            "package confluent.type; "
                + "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
        default: nil
        }
    }

    private static func google(_ text: String) -> String { "package google.protobuf; " + text }

    private static let secondsAndNanos = " { int64 seconds = 1; int32 nanos = 2; }"

    private static let wrapped: [(name: String, type: String)] = [
        ("DoubleValue", "double"), ("FloatValue", "float"), ("Int64Value", "int64"),
        ("UInt64Value", "uint64"), ("Int32Value", "int32"), ("UInt32Value", "uint32"),
        ("BoolValue", "bool"), ("StringValue", "string"), ("BytesValue", "bytes"),
    ]

    private static let structures = """
        message Struct { map<string, Value> fields = 1; }
        message Value {
          oneof kind {
            NullValue null_value = 1; double number_value = 2; string string_value = 3;
            bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6;
          }
        }
        enum NullValue { NULL_VALUE = 0; }
        message ListValue { repeated Value values = 1; }
        """
}
