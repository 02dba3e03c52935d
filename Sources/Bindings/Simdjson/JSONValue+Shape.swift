// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension JSONValue {
    /// What a value is, in words that say nothing of its content: to tell whoever expected another.
    package var shape: String {
        switch kind {
        case .object: object!.isEmpty ? "an empty object" : "an object"
        case .array: array!.isEmpty ? "an empty array" : "an array"
        case .string: "a text of \(Self.shape(ofText: string!))"
        case .number: integerText.map { Self.shape(ofDigits: $0) } ?? "a number with a fraction"
        case .bool: "true or false"
        case .null: "null"
        }
    }

    private static func shape(ofDigits text: String) -> String {
        let digits = text.utf8.count - (text.hasPrefix("-") ? 1 : 0)
        return "\(text.hasPrefix("-") ? "a negative" : "an") integer of \(digits) "
            + (digits == 1 ? "digit" : "digits")
    }

    private static func shape(ofText text: UnsafeRawBufferPointer) -> String {
        guard let first = text.first else { return "no bytes" }
        let digits = text.dropFirst(first == UInt8(ascii: "-") ? 1 : 0)
        if !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) {
            return "\(digits.count) \(digits.count == 1 ? "digit" : "digits")"
        }
        switch first {
        case UInt8(ascii: "{"): return "a JSON object"
        case UInt8(ascii: "["): return "a JSON array"
        case UInt8(ascii: "\""): return "a text in quotation marks"
        default: return "\(text.count) bytes"
        }
    }
}
