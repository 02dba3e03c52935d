// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Testing

/// What `make fuzz` begins with and what it has found, without a fuzzer.
@Suite struct `Hostile input` {
    @Test(arguments: FuzzTarget.allCases)
    func `hostile input breaks no promise`(_ target: FuzzTarget) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Corpus")
            .appendingPathComponent(target.rawValue).path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        #expect(!names.isEmpty, "a target without seeds")
        for name in names {
            let input = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
            do {
                try input.withUnsafeBytes { try target.run($0) }
            } catch {
                Issue.record("\(name): \(error)")
            }
        }
    }

    /// A suite that cannot fail would be worth nothing.
    @Test func `hostile input is told from input that keeps its promises`() {
        #expect(throws: BrokenPromise.self) { try promiseLine("a cursor moved \u{1B}[2J") }
        #expect(throws: BrokenPromise.self) { try promiseLine("two\nlines") }
        #expect(throws: BrokenPromise.self) { try promiseLine("") }
        #expect(throws: BrokenPromise.self) { try promiseHeaderValue("space at the end ") }
    }
}
