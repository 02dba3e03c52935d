// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Entrypoint
internal import Testing

@Suite struct `A duration as an argument` {
    static let read: [(String, Duration)] = [
        ("1s", .seconds(1)), ("500ms", .milliseconds(500)), ("2h", .seconds(7200)),
        ("90", .seconds(90)), ("0.5", .milliseconds(500)), ("0s", .zero),
        ("366d", .seconds(366 * 86_400)),
    ]

    @Test(arguments: read)
    func `it has a unit, or is a number of seconds`(text: String, duration: Duration) {
        #expect(DurationArgument(argument: text)?.duration == duration)
    }

    @Test(arguments: [
        "367d", "8785h", "31622401", "9223372036854775807ms", "-1", "-1s", "1y", "nan", "inf", "",
    ])
    func `nothing is longer than a year, with a unit or without`(text: String) {
        #expect(DurationArgument(argument: text) == nil)
    }

    /// What it is refused with; nil where it is not.
    private func refusal(_ text: String, atLeast least: Duration) -> String? {
        do {
            _ = try DurationArgument(text, atLeast: least)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: ["0s", "999ms", "0", "0.5", "400d", "soon"])
    func `an option's error names its range`(text: String) throws {
        let words = try #require(refusal(text, atLeast: .seconds(1)))
        #expect(words.contains("from 1s to 366d"))
    }

    @Test(arguments: ["1s", "1000ms", "1", "366d"])
    func `the ends of an option's range are of it`(text: String) {
        #expect(refusal(text, atLeast: .seconds(1)) == nil)
    }
}
