// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension String {
    /// A subject that nobody shows, for people, with what is odd about it: it is made of keys, and some
    /// programs write keys that are no plain text.
    var remarkedSubject: String { printable + subjectRemark }

    /// What is odd about it, in parentheses; empty where nothing is.
    package var subjectRemark: String { oddity.map { " (\($0))" } ?? "" }

    private var oddity: String? {
        // Bytes that are no UTF-8 have become U+FFFD.
        if unicodeScalars.contains(where: { $0 == "\u{FFFD}" || $0 == "\u{0}" }) {
            return
                "with bytes that are no text: keySchema: int64 or int32 reads keys that are integers"
        }
        if contains("\"") || contains("{") {
            return
                "the quotation marks or braces are in the record's key or field: of a key in JSON, "
                + "keySchema: json or {key:} takes the text inside, and {key:/id} a field"
        }
        if let first = unicodeScalars.first, let last = unicodeScalars.last,
            Self.isWhiteSpace(first) || Self.isWhiteSpace(last)
        {
            return "with white space at an end"
        }
        return unicodeScalars.contains("\u{FEFF}") ? "with a byte order mark" : nil
    }

    private static func isWhiteSpace(_ scalar: Unicode.Scalar) -> Bool {
        [0x20, 0x09, 0x0A, 0x0D].contains(scalar.value)
    }
}
