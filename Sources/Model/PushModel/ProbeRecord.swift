// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The record by which `lamplighter check` tries the right to write. Kafka refuses it; where another
/// broker stores it, all readers leave it out.
package enum ProbeRecord {
    /// In no topic of ours is this a key.
    package static let key = "lamplighter/check"

    /// Whether a record with this key, and without a value, is one.
    package static func hasKey(_ key: UnsafeRawBufferPointer?) -> Bool {
        guard let key, key.count == Self.key.utf8.count else { return false }
        return key.elementsEqual(Self.key.utf8)
    }
}
