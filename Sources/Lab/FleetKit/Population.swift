// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Tracks which tokens each installation has as that changes: apps are deleted, installed again
/// with new tokens, and restored to another phone with the tokens of the old one.
struct Population: Sendable {
    /// The number of each installation's token set; nil if the app was deleted.
    private var tokenSets: [Int?]
    private var nextTokenSet: Int

    struct Change: Hashable, Sendable {
        var installation: Int
        /// The new token set; nil if the app was deleted.
        var tokenSet: Int?
    }

    init(installations: Int) {
        precondition(installations > 0, "a population has at least one installation")
        tokenSets = Array(0..<installations)
        nextTokenSet = installations
    }

    /// The next change, of one installation or of two that swap tokens.
    mutating func change(using random: inout some RandomNumberGenerator) -> [Change] {
        let installation = tokenSets.indices.randomElement(using: &random)!
        guard let tokens = tokenSets[installation] else {
            return [give(fresh(), to: installation)]
        }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: return [give(nil, to: installation)]
        case 1: return [give(fresh(), to: installation)]
        default:
            let other = tokenSets.indices.randomElement(using: &random)!
            guard other != installation, let others = tokenSets[other] else {
                return [give(fresh(), to: installation)]
            }
            return [give(others, to: installation), give(tokens, to: other)]
        }
    }

    private mutating func fresh() -> Int {
        nextTokenSet += 1
        return nextTokenSet - 1
    }

    private mutating func give(_ tokenSet: Int?, to installation: Int) -> Change {
        assert(
            tokenSet.map { $0 < nextTokenSet } ?? true,
            "only a set of tokens that was made is given")
        tokenSets[installation] = tokenSet
        return Change(installation: installation, tokenSet: tokenSet)
    }
}
