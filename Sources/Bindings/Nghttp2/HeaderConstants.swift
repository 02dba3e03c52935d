// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A header that repeats: its number among the `HeaderConstants` of its owner.
package struct ConstantHeader: BitwiseCopyable, Sendable {
    package let number: Int

    package init(number: Int) { self.number = number }
}

/// The text of the headers that an owner's requests repeat, at fixed addresses, so that encoders
/// pass numbers and pointers about and count no references.
package struct HeaderConstants: ~Copyable {
    private var entries: [(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>)]

    package init() { entries = [] }

    deinit {
        for entry in entries {
            entry.name.deallocate()
            entry.value.deallocate()
        }
    }

    package var count: Int { entries.count }

    /// Adds a header. `value` is empty for a name whose values differ.
    package mutating func add(_ name: String, _ value: String = "") -> ConstantHeader {
        entries.append((Self.copy(name), Self.copy(value)))
        return ConstantHeader(number: entries.count - 1)
    }

    func name(_ constant: ConstantHeader) -> UnsafeBufferPointer<UInt8> {
        entries[constant.number].name
    }

    func value(_ constant: ConstantHeader) -> UnsafeBufferPointer<UInt8> {
        entries[constant.number].value
    }

    private static func copy(_ text: String) -> UnsafeBufferPointer<UInt8> {
        let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        _ = bytes.initialize(from: text.utf8)
        return UnsafeBufferPointer(bytes)
    }
}
