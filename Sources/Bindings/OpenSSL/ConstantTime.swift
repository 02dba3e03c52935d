// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// Comparison of secrets.
package enum ConstantTime {
    /// Whether both are equal. For equal lengths it takes as long whatever they hold, so that timing
    /// does not tell how much of a guess is right.
    package static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}
