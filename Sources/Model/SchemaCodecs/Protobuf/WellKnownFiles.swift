// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The .proto files that a registry leaves out of a schema's references, since every compiler or every
/// serializer of Confluent's has them.
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
        case "confluent/meta.proto":
            "package confluent; message Meta { string doc = 1; map<string, string> params = 2; "
                + "repeated string tags = 3; }"
        case "google/protobuf/source_context.proto":
            google("message SourceContext { string file_name = 1; }")
        default: types[name].map { "package google.type; " + imports + $0 }
        }
    }

    private static let imports = """
        import "google/protobuf/duration.proto"; import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        """

    private static func message(_ name: String, _ type: String, _ fields: [String]) -> String {
        let lines = fields.enumerated().map { "\(type) \($1) = \($0 + 1);" }
        return "message \(name) { \(lines.joined(separator: " ")) }"
    }

    private static func enumeration(_ name: String, _ values: [String]) -> String {
        let lines = values.enumerated().map { "\($1) = \($0);" }
        return "enum \(name) { \(lines.joined(separator: " ")) }"
    }

    private static let types: [String: String] = [
        "google/type/money.proto":
            "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
        "google/type/date.proto": message("Date", "int32", ["year", "month", "day"]),
        "google/type/latlng.proto": message("LatLng", "double", ["latitude", "longitude"]),
        "google/type/timeofday.proto": message(
            "TimeOfDay", "int32", ["hours", "minutes", "seconds", "nanos"]),
        "google/type/datetime.proto": """
        message DateTime { int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4;
        int32 minutes = 5; int32 seconds = 6; int32 nanos = 7; oneof time_offset {
        google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; } }
        message TimeZone { string id = 1; string version = 2; }
        """,
        "google/type/color.proto":
            "message Color { float red = 1; float green = 2; float blue = 3; "
            + "google.protobuf.FloatValue alpha = 4; }",
        "google/type/dayofweek.proto": enumeration(
            "DayOfWeek",
            [
                "DAY_OF_WEEK_UNSPECIFIED", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY",
                "SATURDAY", "SUNDAY",
            ]),
        "google/type/month.proto": enumeration(
            "Month",
            [
                "MONTH_UNSPECIFIED", "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE",
                "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER",
            ]),
        "google/type/calendar_period.proto": enumeration(
            "CalendarPeriod",
            [
                "CALENDAR_PERIOD_UNSPECIFIED", "DAY", "WEEK", "FORTNIGHT", "MONTH", "QUARTER",
                "HALF", "YEAR",
            ]),
        "google/type/postal_address.proto": """
        message PostalAddress { int32 revision = 1; string region_code = 2;
        string language_code = 3; string postal_code = 4; string sorting_code = 5;
        string administrative_area = 6; string locality = 7; string sublocality = 8;
        repeated string address_lines = 9; repeated string recipients = 10;
        string organization = 11; }
        """,
        "google/type/interval.proto":
            "message Interval { google.protobuf.Timestamp start_time = 1; "
            + "google.protobuf.Timestamp end_time = 2; }",
        "google/type/decimal.proto": message("Decimal", "string", ["value"]),
        "google/type/expr.proto": message(
            "Expr", "string", ["expression", "title", "description", "location"]),
        "google/type/fraction.proto": message(
            "Fraction", "int64", ["numerator", "denominator"]),
        "google/type/phone_number.proto":
            "message PhoneNumber { oneof kind { string e164_number = 1; ShortCode short_code = 2; } "
            + "string extension = 3; "
            + "message ShortCode { string region_code = 1; string number = 2; } }",
        "google/type/quaternion.proto": message("Quaternion", "double", ["x", "y", "z", "w"]),
        "google/type/localized_text.proto": message(
            "LocalizedText", "string", ["text", "language_code"]),
    ]

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
