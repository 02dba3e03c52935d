// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CSimdjson
internal import Glibc

extension UnsafeRawBufferPointer {
    /// Whether these bytes are those of the literal.
    package func equals(_ literal: StaticString) -> Bool {
        count == literal.utf8CodeUnitCount
            && (count == 0 || memcmp(baseAddress!, literal.utf8Start, count) == 0)
    }

    /// Whether the bytes of a literal are somewhere in these.
    package func contains(_ literal: StaticString) -> Bool {
        guard let baseAddress else { return false }
        return csimdjson_contains(
            baseAddress, count, literal.utf8Start, literal.utf8CodeUnitCount)
    }

    package func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        count == other.count
            && (count == 0 || memcmp(baseAddress!, other.baseAddress!, count) == 0)
    }
}
