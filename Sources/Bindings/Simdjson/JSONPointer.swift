// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A parsed RFC 6901 pointer such as `/order/id` or `/items/0`.
package struct JSONPointer: Sendable, Hashable {
    /// The names of members and the digits of positions, from the outermost on.
    package let steps: [[UInt8]]

    /// Nil unless `text` is empty or begins with `/`, and each `~` is part of `~0` or `~1`.
    package init?(_ text: String) {
        if text.isEmpty {
            steps = []
            return
        }
        guard text.utf8.first == UInt8(ascii: "/") else { return nil }
        var steps: [[UInt8]] = []
        for step in text.utf8.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        {
            guard let bytes = Self.unescaped(step) else { return nil }
            steps.append(bytes)
        }
        self.steps = steps
    }

    private init(steps: [[UInt8]]) { self.steps = steps }

    /// Its outermost step alone.
    package var first: JSONPointer { JSONPointer(steps: Array(steps.prefix(1))) }

    private static func unescaped(_ step: Substring.UTF8View) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = step[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "~") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
            case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
            default: return nil
            }
        }
        return bytes
    }

    fileprivate func resolve(in value: JSONValue) -> JSONValue? {
        var value = value
        for step in steps {
            guard let next = step.withUnsafeBytes({ Self.step($0, from: value) }) else {
                return nil
            }
            value = next
        }
        return value
    }

    private static func step(_ name: UnsafeRawBufferPointer, from value: JSONValue) -> JSONValue? {
        if let object = value.object {
            var found: JSONValue?
            for member in object where member.key.equals(name) { found = member.value }
            return found
        }
        guard let array = value.array, let position = arrayIndex(name) else { return nil }
        var remaining = position
        for element in array {
            if remaining == 0 { return element }
            remaining -= 1
        }
        return nil
    }

    /// Digits without a leading zero, as RFC 6901 has it; nine are more than any document holds.
    package static func arrayIndex(_ name: UnsafeRawBufferPointer) -> Int? {
        guard (1...9).contains(name.count), name.allSatisfy({ (0x30...0x39).contains($0) }),
            name.count == 1 || name[0] != 0x30
        else { return nil }
        return name.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}

extension JSONValue {
    /// The value that the pointer names; of duplicate members the last.
    package subscript(pointer: JSONPointer) -> JSONValue? { pointer.resolve(in: self) }
}
