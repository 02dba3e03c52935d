// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A 128-bit hash that identifies a text: among ten million, two are equal by chance with a
/// probability of 10⁻²⁵.
struct Fingerprint: Hashable {
    private var high: UInt64 = 0x243F_6A88_85A3_08D3
    private var low: UInt64 = 0x1319_8A2E_0370_7344

    init() {}

    /// 64 bits of the hash, enough to tell the pushes of one token apart.
    var short: UInt64 { high ^ low }

    /// Adds a field and its length, so that different fields cannot give the same text.
    mutating func add(_ bytes: Span<UInt8>) {
        var word: UInt64 = 0
        for index in bytes.indices {
            word = word << 8 | UInt64(bytes[index])
            if index & 7 == 7 {
                mix(word)
                word = 0
            }
        }
        mix(word)
        mix(UInt64(bytes.count))
    }

    mutating func add(_ text: String) { add(Array(text.utf8).span) }

    /// Mixes a word in by a 64-by-64-bit multiplication for each half.
    private mutating func mix(_ word: UInt64) {
        let first = (high ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        let second = (low ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        high = first.high ^ first.low &+ second.high
        low = second.high ^ second.low &+ first.low
    }
}
