// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import Testing

@testable import Worker

@Suite struct `The record in hand` {
    private static let topics = ["events", "orders"]

    private static func file() -> String {
        FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)").path
    }

    @Test func `the record in hand is named after a crash in the middle of it, once`() async throws
    {
        let file = Self.file()
        defer { try? FileManager.default.removeItem(atPath: file) }
        await #expect(processExitsWith: .failure) { [file = file as String] in
            let record = try RecordInHand(file: file, topics: ["events", "orders"])
            record.take(topic: 0, partition: 1, offset: 2)
            record.putDown()
            record.take(topic: 1, partition: 3, offset: 1 << 40)
            fatalError("as a decoder that meets what it cannot bear")
        }
        // The next release has other topics: the file has the names of the crashed one's.
        do {
            let left = try RecordInHand(file: file, topics: ["new"]).left
            #expect(left?.topic == "orders")
            #expect(left?.partition == 3 && left?.offset == 1 << 40)
        }
        #expect(try RecordInHand(file: file, topics: Self.topics).left == nil)
    }

    @Test func `the record in hand is not named where the process ended elsewhere`() throws {
        let file = Self.file()
        defer { try? FileManager.default.removeItem(atPath: file) }
        do {
            let record = try RecordInHand(file: file, topics: Self.topics)
            #expect(record.left == nil)
            record.take(topic: 1, partition: 0, offset: 0)
            record.putDown()
        }
        #expect(try RecordInHand(file: file, topics: Self.topics).left == nil)
    }

    @Test func `a file that is not ours names nothing`() throws {
        let file = Self.file()
        defer { try? FileManager.default.removeItem(atPath: file) }
        try Data(repeating: 0xFF, count: 100).write(to: URL(filePath: file))
        #expect(try RecordInHand(file: file, topics: Self.topics).left == nil)
    }

    @Test func `the record in hand is kept where the configuration says, and nowhere otherwise`()
        throws
    {
        #expect(try configuration("").intake.lastRecordFile == nil)
        let read = try configuration("intake: {lastRecordFile: /run/lamplighter/record}")
        #expect(read.intake.lastRecordFile == "/run/lamplighter/record")
    }
}
