// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import Testing

@Suite struct `The watch over a stop` {
    @Test func `a process that hangs while it stops ends itself and says what hung`() async throws {
        let end = await #expect(
            processExitsWith: .exitCode(StopWatch.exitCode), observing: [\.standardErrorContent]
        ) {
            try StopWatch.start()
            StopWatch.note("holding its breath")
            StopWatch.limit(.milliseconds(50))
            // A later and longer limit does not put it off.
            StopWatch.limit(.seconds(3600))
            while true { pause() }
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("this had not ended: holding its breath."))
    }

    @Test func `a process that hangs ends itself while nobody reads what it says`() async throws {
        await #expect(processExitsWith: .exitCode(StopWatch.exitCode)) {
            var ends: [CInt] = [0, 0]
            guard pipe(&ends) == 0, fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 else { _exit(1) }
            let page = [UInt8](repeating: 0, count: 4096)
            while write(ends[1], page, page.count) > 0 {}
            guard fcntl(ends[1], F_SETFL, 0) == 0, dup2(ends[1], 2) == 2 else { _exit(1) }
            try StopWatch.start()
            StopWatch.limit(.milliseconds(50))
            while true { pause() }
        }
    }

    @Test func `a process that is not asked to stop is left alone`() async throws {
        await #expect(processExitsWith: .exitCode(7)) {
            try StopWatch.start()
            StopWatch.note("nothing")
            usleep(200_000)
            _exit(7)
        }
    }
}
