// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// Counts what the APNs simulator has accepted, by its log.
struct DeliveredPushes {
    /// Pushes to tokens that a device shows something with.
    private(set) var expected = 0
    /// Pushes to tokens that a device had no more, later than `grace` after that was acknowledged.
    private(set) var late = 0
    /// Pushes to tokens that no device has ever had.
    private(set) var unknown = 0
    private(set) var tokens: Set<String> = []

    /// A push that was on its way when the registration changed.
    static let grace = Duration.seconds(5)

    private struct Line: Decodable {
        var t: Int64
        var token: String
        var status: Int
    }

    /// - Parameters:
    ///   - current: the tokens that devices have.
    ///   - formers: when each token that a device has no more was acknowledged to be gone, in
    ///     nanoseconds since 1970.
    mutating func count(log: Data, current: Set<String>, formers: [String: Int64]) {
        let decoder = JSONDecoder()
        for line in log.split(separator: UInt8(ascii: "\n")) {
            guard let answer = try? decoder.decode(Line.self, from: line), answer.status == 200
            else { continue }
            tokens.insert(answer.token)
            if current.contains(answer.token) {
                expected += 1
            } else if let gone = formers[answer.token] {
                let after = gone == .max ? .zero : Duration.nanoseconds(answer.t - gone)
                if after > Self.grace { late += 1 } else { expected += 1 }
            } else {
                unknown += 1
            }
        }
    }
}
