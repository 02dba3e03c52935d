// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CSimdjson

/// Text in UTF-8.
package enum UTF8Text {
    /// Whether the bytes are UTF-8. Allocates nothing.
    package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.isEmpty || csimdjson_is_utf8(bytes.baseAddress, bytes.count)
    }
}
