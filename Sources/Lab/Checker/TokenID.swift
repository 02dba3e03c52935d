// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The name shown in place of a device token: the first 16 hexadecimal digits of its SHA-256. It is
/// computed here, because the checker shares no code with the worker but the binding to librdkafka.
package struct TokenID: Hashable, CustomStringConvertible {
    package let description: String

    /// - Parameter token: the bytes of the token, not hexadecimal digits.
    package init(_ token: [UInt8]) {
        let digest = SHA256.digest(token)
        description = digest.prefix(8).map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
    }
}

/// SHA-256 (FIPS 180-4), for short messages.
enum SHA256 {
    static func digest(_ message: [UInt8]) -> [UInt8] {
        var padded = message + [0x80]
        // The length in eight bytes ends the last block of 64.
        padded += Array(repeating: 0, count: (120 - padded.count % 64) % 64)
        padded += bigEndian(UInt64(message.count) * 8)
        var state = initial
        for start in stride(from: 0, to: padded.count, by: 64) {
            compress(padded[start..<start + 64], into: &state)
        }
        return state.flatMap(bigEndian)
    }

    private static func compress(_ block: ArraySlice<UInt8>, into state: inout [UInt32]) {
        var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { index in
            block[index..<index + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<64 {
            let (early, late) = (words[index - 15], words[index - 2])
            let first = rotate(early, 7) ^ rotate(early, 18) ^ early >> 3
            let second = rotate(late, 17) ^ rotate(late, 19) ^ late >> 10
            words.append(words[index - 16] &+ first &+ words[index - 7] &+ second)
        }
        // The working variables a to h of the standard.
        var row = state
        for index in 0..<64 {
            let choice = row[4] & row[5] ^ ~row[4] & row[6]
            let majority = row[0] & row[1] ^ row[0] & row[2] ^ row[1] & row[2]
            let upper = rotate(row[4], 6) ^ rotate(row[4], 11) ^ rotate(row[4], 25)
            let lower = rotate(row[0], 2) ^ rotate(row[0], 13) ^ rotate(row[0], 22)
            let first = row[7] &+ upper &+ choice &+ constants[index] &+ words[index]
            row = [
                first &+ lower &+ majority, row[0], row[1], row[2], row[3] &+ first, row[4],
                row[5], row[6],
            ]
        }
        for index in state.indices { state[index] &+= row[index] }
    }

    private static func rotate(_ word: UInt32, _ bits: UInt32) -> UInt32 {
        word >> bits | word << (32 - bits)
    }

    private static func bigEndian<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
        stride(from: Word.bitWidth - 8, through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: word >> Word($0))
        }
    }

    // The fractional parts of the square roots of the first 8 primes and of the cube roots of the
    // first 64, in 32 bits.
    private static let initial = primes.prefix(8).map { root($0, cube: false) }
    private static let constants = primes.map { root($0, cube: true) }
    private static let primes: [UInt64] = (2...311).filter { number in
        !(2..<number).contains { number % $0 == 0 }
    }

    /// The first 32 bits after the binary point of a root, found bit by bit in integers.
    private static func root(_ prime: UInt64, cube: Bool) -> UInt32 {
        var low: UInt64 = 0
        // The root of the prime, scaled by 2^32; every one is below 18.
        for bit in stride(from: UInt64(37), through: 0, by: -1) {
            let candidate = UInt128(low | 1 << bit)
            let limit = UInt128(prime) << (cube ? 96 : 64)
            let power = cube ? candidate * candidate * candidate : candidate * candidate
            if power <= limit { low |= 1 << bit }
        }
        return UInt32(truncatingIfNeeded: low)
    }
}
