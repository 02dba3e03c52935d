// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import Simdjson

/// Where in a header block the headers that matter are.
struct RequestHead {
    enum Field: Int {
        case method, path, authorization, pushType, topic, priority, expiration, apnsID, collapseID
    }

    /// Indexed by field; -1 for absent.
    private var places = InlineArray<9, Int>(repeating: -1)
    /// One of them came twice.
    private(set) var hasDuplicates = false

    init(_ block: borrowing HeaderBlock) {
        for index in 0..<block.count {
            guard let field = Self.field(named: block.name(index)) else { continue }
            if places[field.rawValue] >= 0 { hasDuplicates = true }
            places[field.rawValue] = index
        }
    }

    /// The value of a field in the block that this was made of.
    func value(_ field: Field, in block: borrowing HeaderBlock) -> UnsafeRawBufferPointer? {
        let place = places[field.rawValue]
        return place < 0 ? nil : block.value(place)
    }

    /// The lengths tell most names apart, so that each name is compared once or twice.
    private static func field(named name: UnsafeRawBufferPointer) -> Field? {
        switch name.count {
        case 5: name.equals(":path") ? .path : nil
        case 7: name.equals("apns-id") ? .apnsID : name.equals(":method") ? .method : nil
        case 10: name.equals("apns-topic") ? .topic : nil
        case 13:
            name.equals("authorization")
                ? .authorization : name.equals("apns-priority") ? .priority : nil
        case 14: name.equals("apns-push-type") ? .pushType : nil
        case 15: name.equals("apns-expiration") ? .expiration : nil
        case 16: name.equals("apns-collapse-id") ? .collapseID : nil
        default: nil
        }
    }
}

/// A value of a header, or of a part of one.
enum HeaderText {
    /// `8-4-4-4-12` hexadecimal digits of either case.
    static func isUUID(_ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == 36 else { return false }
        for index in 0..<36 {
            let isDash = index == 8 || index == 13 || index == 18 || index == 23
            guard isDash ? text[index] == 0x2D : isHexDigit(text[index]) else { return false }
        }
        return true
    }

    /// Digits only, within 63 bits.
    static func isInteger(_ text: UnsafeRawBufferPointer) -> Bool {
        // 18: every such number of digits fits.
        guard !text.isEmpty, text.count <= 18 else { return false }
        return text.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }

    static func isHexDigit(_ byte: UInt8) -> Bool {
        (byte >= 0x30 && byte <= 0x39) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66)
    }
}
