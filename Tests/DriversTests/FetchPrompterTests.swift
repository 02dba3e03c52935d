// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import KafkaLog

@Suite struct `Fetch prompter` {
    private static func at(_ milliseconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(milliseconds) * 1_000_000)
    }

    @Test func `looks who is behind once in 50 ms, as long as something comes`() {
        var prompter = FetchPrompter(isNeeded: true)
        var looks = 0
        for millisecond in 0..<1000
        where prompter.looks(afterReading: 1, now: Self.at(millisecond)) {
            looks += 1
        }
        #expect(looks == 20)
    }

    @Test func `has a turn taken after the one that has emptied the queue, and then waits`() {
        var prompter = FetchPrompter(isNeeded: true)
        #expect(prompter.nextLook == nil)
        var look = prompter.looks(afterReading: 10, now: Self.at(0))
        #expect(look)
        #expect(prompter.nextLook == nil)
        // Too early to look, and nothing may come any more.
        look = prompter.looks(afterReading: 10, now: Self.at(20))
        #expect(!look)
        #expect(prompter.nextLook == Self.at(50))
        look = prompter.looks(afterReading: 0, now: Self.at(50))
        #expect(look)
        #expect(prompter.nextLook == nil)
        look = prompter.looks(afterReading: 0, now: Self.at(5000))
        #expect(!look)
    }

    @Test func `never looks where librdkafka has a setting for it`() {
        var prompter = FetchPrompter(isNeeded: false)
        let looks = prompter.looks(afterReading: 10, now: Self.at(0))
        #expect(!looks && prompter.nextLook == nil)
    }
}
