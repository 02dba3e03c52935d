// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import Simdjson

/// The positions of the relevant headers in a header block.
struct RequestHead {
    enum Field: Int {
        case method, path, authorization, pushType, topic, priority, expiration, apnsID, collapseID
        case channelID, requestID
    }

    /// The positions, indexed by field; -1 for an absent header.
    private var places = InlineArray<11, Int>(repeating: -1)
    /// Whether one of them occurs twice.
    private(set) var hasDuplicates = false

    init(_ block: borrowing HeaderBlock) {
        for index in 0..<block.count {
            guard let field = Self.field(named: block.name(index)) else { continue }
            if places[field.rawValue] >= 0 { hasDuplicates = true }
            places[field.rawValue] = index
        }
    }

    /// The value of a field in `block`, which must be the one that this was made from.
    func value(_ field: Field, in block: borrowing HeaderBlock) -> UnsafeRawBufferPointer? {
        let place = places[field.rawValue]
        return place < 0 ? nil : block.value(place)
    }

    /// The field of a name; nil for other names. Most lengths differ, so each name is compared with
    /// three at most.
    private static func field(named name: UnsafeRawBufferPointer) -> Field? {
        switch name.count {
        case 5: name.equals(":path") ? .path : nil
        case 7: name.equals("apns-id") ? .apnsID : name.equals(":method") ? .method : nil
        case 10: name.equals("apns-topic") ? .topic : nil
        case 13:
            name.equals("authorization")
                ? .authorization : name.equals("apns-priority") ? .priority : nil
        case 14: name.equals("apns-push-type") ? .pushType : nil
        case 15:
            name.equals("apns-expiration")
                ? .expiration
                : name.equals("apns-channel-id")
                    ? .channelID : name.equals("apns-request-id") ? .requestID : nil
        case 16: name.equals("apns-collapse-id") ? .collapseID : nil
        default: nil
        }
    }
}

/// Checks the text of header values.
enum HeaderText {
    /// Whether the text is a UUID: `8-4-4-4-12` hexadecimal digits of either case.
    static func isUUID(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == 36 else { return false }
        for index in 0..<36 {
            let isDash = index == 8 || index == 13 || index == 18 || index == 23
            guard isDash ? text[index] == 0x2D : isHexDigit(text[index]) else { return false }
        }
        return true
    }

    /// Whether the text is a decimal integer of at most 18 digits.
    static func isInteger(_ text: UnsafeRawBufferPointer) -> Bool {
        // Every number of 18 digits fits 63 bits.
        guard !text.isEmpty, text.count <= 18 else { return false }
        return text.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }

    static func isHexDigit(_ byte: UInt8) -> Bool {
        (byte >= 0x30 && byte <= 0x39) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66)
    }
}
