// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

extension UnsafeRawBufferPointer {
    /// Whether these bytes are those of the literal.
    package func equals(_ literal: StaticString) -> Bool {
        count == literal.utf8CodeUnitCount
            && (count == 0 || memcmp(baseAddress!, literal.utf8Start, count) == 0)
    }

    package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        count == other.count
            && (count == 0 || memcmp(baseAddress!, other.baseAddress!, count) == 0)
    }
}
