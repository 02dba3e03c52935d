// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import Testing

/// An optimised build strips the messages of failed checks: what is left is the signal.
@Suite struct `The report of a process that crashes` {
    @Test func `a process that crashes says so in one line and exits 70`() async throws {
        let end = await #expect(
            processExitsWith: .exitCode(70), observing: [\.standardErrorContent]
        ) {
            unsetenv("SWIFT_BACKTRACE")
            CrashReport.install(program: "example", version: "example 1.2")
            raise(SIGILL)
        }
        let lines = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
            .split(separator: "\n").filter { $0.hasPrefix("example: ") }
        #expect(lines.count == 1)
        let line = try #require(lines.first)
        #expect(line.hasPrefix("example: internal error: SIGILL, a check in the program failed"))
        #expect(line.contains(", in thread ") && line.hasSuffix(": example 1.2"))
    }

    @Test func `a process that crashes names who sent the signal, if somebody did`() async throws {
        let end = await #expect(
            processExitsWith: .exitCode(70), observing: [\.standardErrorContent]
        ) {
            unsetenv("SWIFT_BACKTRACE")
            CrashReport.install(program: "example", version: "example 1.2")
            kill(getpid(), SIGSEGV)
            // Another thread may be the one that gets it.
            sleep(30)
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("example: internal error: SIGSEGV"))
        #expect(said.contains(", sent by process "))
    }

    @Test func `a process that crashes says so of a full stack, in a thread of its own too`()
        async throws
    {
        let end = await #expect(
            processExitsWith: .exitCode(70), observing: [\.standardErrorContent]
        ) {
            unsetenv("SWIFT_BACKTRACE")
            CrashReport.install(program: "example", version: "example 1.2")
            try NamedThread.start(name: "deep") { _ = descend(1) }.join()
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("example: internal error: SIGSEGV"))
        #expect(said.contains("in thread deep at program+0x"))
    }

    @Test func `a process that crashes hands over to what would have come, where asked to`()
        async throws
    {
        let end = await #expect(
            processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]
        ) {
            setenv("SWIFT_BACKTRACE", "enable=no", 1)
            signal(SIGABRT, SIG_DFL)
            CrashReport.install(program: "example", version: "example 1.2")
            // A thread of Swift's pool blocks the signal. abort() of glibc 2.41 does not unblock it,
            // and ends the process without asking the handler.
            var blocked = sigset_t()
            sigemptyset(&blocked)
            sigaddset(&blocked, SIGABRT)
            pthread_sigmask(SIG_UNBLOCK, &blocked, nil)
            Glibc.abort()
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("example: internal error: SIGABRT"))
    }
}

/// Comes back from no depth that a stack has.
@inline(never)
private func descend(_ depth: Int) -> Int {
    guard depth < 1 << 40 else { return 0 }
    return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { room in
        room[depth % 4096] = 1
        return descend(depth + 1) + Int(room[(depth * 7) % 4096])
    }
}
