// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The answers of one sort, each with a tag, ordered by token and time. A row takes 24 bytes.
struct AnswerTable {
    struct Row {
        var token: UInt32
        var status: UInt16
        var t: Int64
        /// The identity of an accepted push, or the reason of a refused one.
        var tag: UInt64
    }

    private(set) var rows: [Row] = []
    /// The position of each token's first row.
    private var starts: [Int] = []

    mutating func append(_ answer: LoggedAnswer, token: UInt32, tag: UInt64) {
        rows.append(Row(token: token, status: answer.status, t: answer.t, tag: tag))
    }

    /// Sorts the rows. To be called once, after the last `append` and before the first look-up.
    mutating func index(tokens: Int) {
        rows.sort { $0.token == $1.token ? $0.t < $1.t : $0.token < $1.token }
        starts = Array(repeating: 0, count: tokens + 1)
        for row in rows { starts[Int(row.token) + 1] += 1 }
        for token in 0..<tokens { starts[token + 1] += starts[token] }
    }

    /// The position of a token's first answer later than `t`; nil if there is none.
    func first(of token: UInt32, after t: Int64) -> Int? {
        let end = starts[Int(token) + 1]
        var low = starts[Int(token)]
        var high = end
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].t > t { high = middle } else { low = middle + 1 }
        }
        return low < end ? low : nil
    }

    /// The positions of a token's answers.
    func positions(of token: UInt32) -> Range<Int> {
        starts[Int(token)]..<starts[Int(token) + 1]
    }

    /// How many rows have a tag that occurred before for the same token.
    func repetitions() -> Int {
        var count = 0
        var seen: Set<UInt64> = []
        for index in rows.indices {
            if index == 0 || rows[index].token != rows[index - 1].token {
                seen.removeAll(keepingCapacity: true)
            }
            if !seen.insert(rows[index].tag).inserted { count += 1 }
        }
        return count
    }
}
