// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// Reads the new whole lines of a file that another process appends to. The file need not exist
/// yet.
package struct LogTail {
    /// Calls `body` with each whole line that a file has now.
    package static func forEachLine(
        of path: String, _ body: (ArraySlice<UInt8>) -> Void
    ) throws {
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            body(bytes[start..<end])
            start = end + 1
        }
    }

    private let path: String
    private var file: FileHandle?
    /// The beginning of a line that is not complete yet.
    private var partial: [UInt8] = []

    /// The most bytes read at once; the rest is read by the next call.
    private static let bytesMax = 4 << 20

    package init(path: String) { self.path = path }

    /// Calls `body` with each line that has come since the last call, without its line end.
    package mutating func forEachNewLine(_ body: (ArraySlice<UInt8>) -> Void) {
        if file == nil { file = FileHandle(forReadingAtPath: path) }
        guard let data = try? file?.read(upToCount: Self.bytesMax), !data.isEmpty else { return }
        let bytes = partial + data
        var start = 0
        while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
            body(bytes[start..<end])
            start = end + 1
        }
        partial = Array(bytes[start...])
    }
}
