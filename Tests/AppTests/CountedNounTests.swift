// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Worker

@Suite struct `A counted noun` {
    @Test func `one has the singular, and no other number has`() {
        #expect([0, 1, 2].map { $0.counted("letter") } == ["0 letters", "1 letter", "2 letters"])
        #expect(1.counted("push", plural: "pushes") == "1 push")
        #expect(1204.counted("push", plural: "pushes") == "1,204 pushes")
    }
}
