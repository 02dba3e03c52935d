// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How many entries a list's block holds: 1 (in the header), 2, 4, 6, 8, 12, 16, 24, 32, 48, …
struct ListSize: BitwiseCopyable {
    /// At most 63, which stands for more than 2^31 entries.
    let rawValue: UInt8

    var isInline: Bool { rawValue == 0 }
    var larger: ListSize { ListSize(rawValue: rawValue + 1) }
    var smaller: ListSize { ListSize(rawValue: rawValue == 0 ? 0 : rawValue - 1) }

    var capacity: Int {
        switch rawValue {
        case 0: 1
        case 1: 2
        // 4, 6, 8, 12, 16, …: 2 · 2^k and 3 · 2^k.
        default: (2 + Int(rawValue & 1)) << Int(rawValue >> 1)
        }
    }
}
