// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import Testing

@Suite struct `The end of a process whose threads are at work` {
    @Test func `no exit handler of a library is run, and what was printed is written`() async throws
    {
        let end = await #expect(
            processExitsWith: .exitCode(3), observing: [\.standardOutputContent]
        ) {
            atexit { _exit(70) }
            print("printed, with no newline at its end", terminator: "")
            ProcessEnd.leave(3)
        }
        let said = String(decoding: try #require(end).standardOutputContent, as: UTF8.self)
        #expect(said.hasSuffix("printed, with no newline at its end"))
    }
}
