// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// An input that the checker cannot read: where, and why. It never guesses instead.
package struct UnreadableInput: Error, Hashable, CustomStringConvertible {
    package let place: String
    package let problem: String

    package init(_ place: String, _ problem: String) {
        self.place = place
        self.problem = problem
    }

    package var description: String { "\(place): \(problem)" }
}

/// An NDJSON file that is read line by line, in memory that does not depend on its size.
struct LogFile {
    let path: String

    /// How much is read at once. The buffer grows if a line is longer.
    private static let chunkBytes = 1 << 20

    /// Calls `body` with each line that is not empty, without its line end.
    ///
    /// Text after the last line end was cut off when its writer was killed, and is not passed on.
    ///
    /// - Returns: whether there was such a partial line.
    func forEachLine(_ body: (Span<UInt8>) throws(LineProblem) -> Void) throws(UnreadableInput)
        -> Bool
    {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw UnreadableInput(path, "cannot be opened")
        }
        defer { try? file.close() }
        var buffer: [UInt8] = []
        var number = 0
        while let chunk = try read(file) {
            // The rest from before contains no line end.
            let searched = buffer.count
            buffer.append(contentsOf: chunk)
            buffer.removeFirst(
                try forEachLine(in: buffer.span, from: searched, number: &number, body))
        }
        return !buffer.isEmpty
    }

    /// Passes the whole lines in `bytes` to `body`.
    ///
    /// - Returns: how many bytes the whole lines take up.
    private func forEachLine(
        in bytes: Span<UInt8>, from searched: Int, number: inout Int,
        _ body: (Span<UInt8>) throws(LineProblem) -> Void
    ) throws(UnreadableInput) -> Int {
        var start = 0
        for end in searched..<bytes.count where bytes[end] == 0x0A {
            number += 1
            if end > start {
                do throws(LineProblem) {
                    try body(bytes.extracting(start..<end))
                } catch {
                    throw UnreadableInput("\(path), line \(number)", error.text)
                }
            }
            start = end + 1
        }
        return start
    }

    private func read(_ file: FileHandle) throws(UnreadableInput) -> Data? {
        do {
            guard let chunk = try file.read(upToCount: Self.chunkBytes), !chunk.isEmpty else {
                return nil
            }
            return chunk
        } catch {
            throw UnreadableInput(path, "reading failed: \(error)")
        }
    }
}

/// Why the checker cannot read a line.
struct LineProblem: Error {
    let text: String

    init(_ text: String) { self.text = text }

    static func missing(_ member: String) -> LineProblem {
        LineProblem("the member \(member) is missing or of another type")
    }
}
