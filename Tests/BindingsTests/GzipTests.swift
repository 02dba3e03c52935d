// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Testing
internal import Zlib

@Suite struct `Gzip` {
    /// As gzip(1) writes it.
    private static func compressed(_ text: String) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/gzip")
        process.arguments = ["-c"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        DispatchQueue.global().async {
            input.fileHandleForWriting.write(Data(text.utf8))
            try? input.fileHandleForWriting.close()
        }
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Array(bytes)
    }

    private static func expanded(_ bytes: [UInt8], pieceBytes: Int) throws -> String {
        var expansion = try GzipExpansion()
        var text: [UInt8] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            try Array(rest.prefix(pieceBytes)).withUnsafeBytes {
                try expansion.expand($0) { text.append(contentsOf: $0) }
            }
            rest = rest.dropFirst(pieceBytes)
        }
        try expansion.finish()
        return String(decoding: text, as: UTF8.self)
    }

    @Test(arguments: [1, 3, 4096, .max])
    func `gzip of several members is expanded, however it comes in`(pieceBytes: Int) throws {
        let long = (0..<20_000).map { "line \($0)" }.joined(separator: "\n")
        let bytes = try Self.compressed(long) + Self.compressed("") + Self.compressed("end")
        #expect(try Self.expanded(bytes, pieceBytes: pieceBytes) == long + "end")
    }

    @Test func `gzip that is cut off or damaged is refused`() throws {
        let bytes = try Self.compressed("some text that is long enough to be compressed")
        #expect(throws: GzipError.truncated) {
            try Self.expanded(Array(bytes.dropLast(4)), pieceBytes: .max)
        }
        var damaged = bytes
        damaged[bytes.count - 6] ^= 0x55
        #expect(throws: GzipError.corrupt) { try Self.expanded(damaged, pieceBytes: .max) }
        #expect(throws: GzipError.corrupt) {
            try Self.expanded(bytes + Array("junk".utf8), pieceBytes: .max)
        }
    }

    @Test func `what expands a thousandfold is lent in pieces`() throws {
        let bytes = try Self.compressed(String(repeating: "x", count: 10_000_000))
        var expansion = try GzipExpansion()
        var (sum, largest) = (0, 0)
        try bytes.withUnsafeBytes {
            try expansion.expand($0) {
                sum += $0.count
                largest = max(largest, $0.count)
            }
        }
        try expansion.finish()
        #expect(sum == 10_000_000 && largest <= 65_536)
    }
}
