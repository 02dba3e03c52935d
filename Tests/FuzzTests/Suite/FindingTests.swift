// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable import APNSSimulator

/// What the corpus cannot say of a finding: not only that no promise is broken, but what is right.
@Suite struct `Findings of hostile input` {
    @Test(arguments: [
        (Int64.max, "9999-12-31T23:59:59.999Z"), (253_402_300_800_000, "9999-12-31T23:59:59.999Z"),
        (Int64.min, "0000-01-01T00:00:00.000Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
    ])
    func `a time beyond RFC 3339 is written as the nearest within`(time: Int64, text: String) {
        #expect(WallTime(milliseconds: time).rfc3339 == text)
        #expect(WallTime(rfc3339: text)?.rfc3339 == text)
    }

    @Test(arguments: ["9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01"])
    func `a time that could not be written again is refused`(text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }

    @Test func `control characters are shown and not obeyed`() {
        #expect(
            "a\u{1B}[2J\r\nb\u{85}\u{2028}é".printable == #"a\u{1b}[2J\u{d}\u{a}b\u{85}\u{2028}é"#)
    }

    @Test func `a script with the line ends of Windows is read line by line`() throws {
        let script = try SimulatorScript("# first\r\nat 5s stall on\r\nat 6s stall off\r\n")
        #expect(script.entries.map(\.command) == ["stall on", "stall off"])
    }
}
