// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Maps short names to values: the members of records and the words of enums. A lookup compares
/// integers and touches no reference count; counting was half the cost of reading a registration.
package struct NameTable<Value: Sendable>: Sendable {
    private let rows: [(name: ShortName, value: Value)]
    /// In the order in which they were given.
    let names: [String]

    /// - Precondition: names have 1 to 16 bytes.
    init(_ names: [(String, Value)]) {
        self.names = names.map(\.0)
        rows = names.map { name, value in
            (Array(name.utf8).withUnsafeBytes { ShortName($0)! }, value)
        }
    }

    func find(_ name: UnsafeRawBufferPointer) -> Value? {
        guard let name = ShortName(name) else { return nil }
        for row in rows where row.name == name { return row.value }
        return nil
    }
}

/// A name of 1 to 16 bytes as two overlapping words, which with the count tell any two names apart.
private struct ShortName: Equatable {
    let first: UInt64
    let last: UInt64
    let count: Int

    init?(_ bytes: UnsafeRawBufferPointer) {
        count = bytes.count
        switch count {
        case 8...16:
            first = bytes.loadUnaligned(as: UInt64.self)
            last = bytes.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
        case 4...7:
            first = UInt64(bytes.loadUnaligned(as: UInt32.self))
            last = UInt64(bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
        case 1...3:
            first = UInt64(bytes[0]) | UInt64(bytes[count / 2]) << 8
            last = UInt64(bytes[count - 1])
        default: return nil
        }
    }
}
