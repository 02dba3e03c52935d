// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Finds the known word that a misspelt one was meant to be.
package enum Spelling {
    /// The most letters compared, since the work grows with them; every key is shorter.
    private static let lettersMax = 100

    /// The candidate that `word` is a slip for; else the one that has most of its words, such as
    /// `BadDeviceToken` for `tokenBad`; of equals the one with the smallest distance, and the first.
    package static func nearest(to word: String, among candidates: [String]) -> String? {
        let word = String(word.prefix(lettersMax))
        let ranked = candidates.map { ($0, distance: distance(word, $0), shared: shared(word, $0)) }
        guard let closest = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        if isSlip(word, for: closest.0) { return closest.0 }
        return ranked.min { ($1.shared, $0.distance) < ($0.shared, $1.distance) }?.0
    }

    /// How many letters of `word` are in words that the other one has too, or begins one with.
    private static func shared(_ word: String, _ other: String) -> Int {
        let known = words(of: other)
        return words(of: word).reduce(0) { sum, word in
            let common = known.filter { $0.hasPrefix(word) || word.hasPrefix($0) }
            return sum + (common.map { min($0.count, word.count) }.max() ?? 0)
        }
    }

    /// `sessionTimeout`, `session.timeout` and `SESSION_TIMEOUT` are two words. Shorter ones than
    /// three letters, such as `ms` and `is`, are left out.
    private static func words(of name: String) -> Set<String> {
        var words: [String] = [""]
        var wasLower = false
        for letter in name {
            if !letter.isLetter {
                words.append("")
            } else if letter.isUppercase, wasLower {
                words.append(letter.lowercased())
            } else {
                words[words.count - 1] += letter.lowercased()
            }
            wasLower = letter.isLowercase
        }
        return Set(words.filter { $0.count > 2 })
    }

    /// Whether `word` is close enough to be a misspelling: at most a third of the letters differ.
    package static func isSlip(_ word: String, for known: String) -> Bool {
        distance(word, known) * 3 <= max(word.count, known.count)
    }

    /// The Levenshtein distance: insertions, deletions and replacements. Letter case is ignored.
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.lowercased()), right = Array(right.lowercased())
        var row = Array(0...right.count)
        for (i, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, diagonal + 1, row[j] + 1)
            }
        }
        assert(
            row[right.count] <= max(left.count, right.count),
            "two words differ by no more letters than the longer one has")
        return row[right.count]
    }
}
