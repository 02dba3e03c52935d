// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which tokens each installation has, and how that changes: apps are deleted, installed again with
/// new tokens, and restored to another phone with the tokens of the old one.
struct Population: Sendable {
    /// By installation: the number of its tokens' set, or nil where the app was deleted.
    private var tokenSets: [Int?]
    private var nextTokenSet: Int

    struct Change: Hashable, Sendable {
        var installation: Int
        /// Nil when the app was deleted.
        var tokenSet: Int?
    }

    init(installations: Int) {
        precondition(installations > 0, "nobody could change")
        tokenSets = Array(0..<installations)
        nextTokenSet = installations
    }

    /// What changes next, of one installation or of two that swap.
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
        assert(tokenSet.map { $0 < nextTokenSet } ?? true, "a set of tokens that nobody has made")
        tokenSets[installation] = tokenSet
        return Change(installation: installation, tokenSet: tokenSet)
    }
}
