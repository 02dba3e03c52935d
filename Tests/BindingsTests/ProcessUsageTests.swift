// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Testing

@Suite struct `Usage of a process` {
    @Test func `its CPU time grows while it works`() {
        let before = ProcessUsage.cpuNanoseconds
        #expect(before > 0)
        var sum: UInt64 = 0
        for number in 0..<1_000_000 as Range<UInt64> { sum &+= number &* number }
        #expect(sum != 0)
        #expect(ProcessUsage.cpuNanoseconds > before)
    }

    @Test func `its open file descriptors are counted, and may be many more`() throws {
        let before = try #require(ProcessUsage.fileDescriptors)
        // Each has two. Other tests open and close some meanwhile.
        var pipes = (0..<50).map { _ in Pipe() }
        let during = try #require(ProcessUsage.fileDescriptors)
        #expect(during >= before + 50)
        #expect(try #require(ProcessUsage.fileDescriptorsMax) > during)
        pipes.removeAll()
    }
}
