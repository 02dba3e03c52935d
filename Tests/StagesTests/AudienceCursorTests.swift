// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

/// The fan-out's rule, proved on the index alone: go downwards and around, visit what is
/// reported as moved, and no entry that was there throughout is skipped.
@Suite struct `An audience cursor over a list that changes` {
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `a fan-out over a changing list visits every entry that is there throughout`(seed: UInt64)
    {
        #expect(Self.skipped(seed: seed, heedsMoves: true) == [])
    }

    @Test
    func `a fan-out over a changing list would skip some without the reports of moved entries`() {
        let skipped = (1...40 as ClosedRange<UInt64>).map {
            Self.skipped(seed: $0, heedsMoves: false).count
        }
        #expect(skipped.reduce(0, +) > 0)
    }

    /// Goes once around a list from a random place, one to three entries between two random
    /// changes, and returns who was there throughout and never visited.
    private static func skipped(seed: UInt64, heedsMoves: Bool) -> Set<TokenID> {
        var dice = AudienceDice(seed: seed)
        var audience = Fixture.audience()
        let keys = 30 + dice.below(30)
        for key in 0..<keys { _ = change(&audience, key, &dice) }
        guard let subject = audience.subject(named: "door"), audience.count(subject) > 0 else {
            return []
        }
        audience.setCursor(subject, true)
        var lap = Lap(start: dice.below(audience.count(subject)))
        var throughout = Set(
            (0..<audience.count(subject)).map { audience.entry(subject, at: $0).token })
        var visited: Set<TokenID> = []
        while true {
            for _ in 0...dice.below(3) {
                guard let position = lap.next(count: audience.count(subject)) else {
                    return throughout.subtracting(visited)
                }
                visited.insert(audience.entry(subject, at: position).token)
            }
            let changes = change(&audience, dice.below(keys), &dice)
            audience.checkInvariants()
            if heedsMoves {
                for moved in changes.moved { visited.insert(moved.entry.token) }
            }
            let present = (0..<audience.count(subject)).map {
                audience.entry(subject, at: $0).token
            }
            throughout.formIntersection(present)
        }
    }

    /// A registration's own tokens come and go; each is in one registration only.
    private static func change(
        _ audience: inout Audience, _ key: Int, _ dice: inout AudienceDice
    ) -> AudienceChanges {
        let rows = (0..<4).filter { _ in dice.below(10) < 6 }.map { number in
            ShownRow("token-\(key)-\(number)", dice.below(8) > 0 ? "door" : "window")
        }
        return audience.changes(applying: Fixture.registration("key-\(key)", rows))
    }
}

/// Positions downwards from `start` to 0, then from the end down to just above `start`.
private struct Lap {
    private let start: Int
    private var position: Int
    private var hasWrapped = false

    init(start: Int) {
        self.start = start
        position = start
    }

    mutating func next(count: Int) -> Int? {
        if !hasWrapped, min(position, count - 1) < 0 {
            hasWrapped = true
            position = count - 1
        }
        let next = min(position, count - 1)
        if hasWrapped, next <= start { return nil }
        position = next - 1
        return next
    }
}
