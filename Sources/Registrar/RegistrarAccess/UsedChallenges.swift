// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The challenges that somebody has attested with at this replica, until they would be too old anyway:
/// each is good for one key.
struct UsedChallenges {
    /// By the last characters of each, which its signature ends in: the key.
    private var recent: [Substring: String] = [:]
    private var former: [Substring: String] = [:]
    private var turnedAt = WallTime(milliseconds: 0)
    private let life: Duration
    private let countMax: Int

    /// 128 bits of base64.
    private static let suffix = 22

    init(life: Duration, countMax: Int = 100_000) {
        assert(
            life > .zero && countMax > 0,
            "a challenge is remembered for more than no time, and there is room for one")
        self.life = life
        self.countMax = countMax
    }

    /// Whether the challenge, which is a valid one, had not been used for another key; now it has been for
    /// this one.
    mutating func use(_ challenge: String, for keyID: String, now: WallTime) -> Bool {
        let age = now - turnedAt
        if age >= life || age < .zero || recent.count >= countMax {
            former = age >= life + life ? [:] : recent
            recent = [:]
            turnedAt = now
        }
        assert(
            challenge.utf8.count >= Self.suffix,
            "a valid challenge is at least as long as the part of it that is remembered")
        let end = Substring(String(challenge.suffix(Self.suffix)))
        if let known = former[end] ?? recent[end] { return known == keyID }
        recent[end] = keyID
        return true
    }
}
