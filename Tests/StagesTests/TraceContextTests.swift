// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@Suite struct `A trace context` {
    private static let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private func context(_ text: String) -> TraceContext? {
        lending(Array(text.utf8)) { TraceContext($0!) }
    }

    @Test func `a trace context is read from its text, and written as that`() throws {
        let read = try #require(context(Self.text))
        #expect(read.trace.text == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(read.span.text == "00f067aa0ba902b7")
        #expect(read.isSampled)
        #expect(read.text == Self.text)
    }

    @Test(arguments: [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true)])
    func `a trace context is sampled if the lowest flag is set`(flags: String, isSampled: Bool) {
        #expect(context(Self.text.dropLast(2) + flags)?.isSampled == isSampled)
    }

    @Test func `a trace context of a later version is read as far as it is known`() {
        let later = "cc" + Self.text.dropFirst(2)
        #expect(context(later)?.trace == context(Self.text)?.trace)
        #expect(context(later + "-what-the-future-says")?.isSampled == true)
        #expect(context(later + ".what") == nil)
        #expect(context(later + "-" + String(repeating: "x", count: 200)) == nil)
    }

    @Test(arguments: [
        "", "00", String(text.dropLast()), text + "-", text + "0", text.uppercased(),
        "ff" + text.dropFirst(2), "0g" + text.dropFirst(2), "00_" + text.dropFirst(3),
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-1",
    ])
    func `any other text is no trace context`(text: String) {
        #expect(context(text) == nil)
    }
}
