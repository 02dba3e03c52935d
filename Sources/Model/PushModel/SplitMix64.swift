// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A seeded random number generator. Stages get their randomness as an argument, so that the same
/// seed always gives the same decisions. A number needs no system call.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    package mutating func next(below bound: UInt64) -> UInt64 {
        next().multipliedFullWidth(by: max(bound, 1)).high
    }

    /// A number evenly distributed over `0..<1`.
    package mutating func nextFraction() -> Double {
        // A Double holds 53 bits exactly.
        Double(next() >> 11) / 0x1p53
    }
}
