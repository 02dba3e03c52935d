// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Testing

private func minutes(_ count: Int) -> Duration { .seconds(count * 60) }

@Suite struct `The age of a ready token` {
    @Test(
        arguments: [
            (-120, .future), (-61, .future), (-60, .young), (0, .young), (1199, .young),
            (1200, .good), (2999, .good), (3000, .late), (3539, .late), (3540, .over),
            (86_400, .over),
        ] as [(Int, ReadyTokenAge)])
    func `a ready token is good until it is 50 minutes old, and over a minute before an hour`(
        seconds: Int, expected: ReadyTokenAge
    ) {
        #expect(ReadyTokenAge(.seconds(seconds)) == expected)
    }

    @Test(
        arguments: [
            (40, 1, false, .now), (20, 0, false, .now), (70, 5, false, .now),
            // APNs wants 20 minutes between two tokens, unless it has refused the first.
            (19, 1, false, .tooSoon), (5, 4, false, .tooSoon), (5, 4, true, .now),
            // A file that was put back, or signed anew in the same second.
            (40, 41, false, .notNewer), (40, 40, true, .notNewer),
            (80, 65, false, .over),
        ] as [(Int, Int, Bool, ReadyTokenAge.Replacement)])
    func `a ready token replaces an older one, not sooner than after 20 minutes`(
        inUse: Int, other: Int, isRefused: Bool, expected: ReadyTokenAge.Replacement
    ) {
        #expect(
            ReadyTokenAge.replacement(
                ages: (minutes(inUse), minutes(other)), isRefused: isRefused) == expected)
    }
}
