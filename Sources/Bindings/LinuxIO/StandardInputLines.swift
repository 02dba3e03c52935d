// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Standard input in whole lines, for a loop that has other things to do.
package struct StandardInputLines {
    private var partial: [UInt8] = []
    /// The most bytes of a line; a longer one is no command of ours, and is cut.
    private static let lineBytesMax = 4096

    package init() {}

    /// Waits for lines, at most for `limit`; nil at the end of the input.
    package mutating func next(waiting limit: Duration) -> [String]? {
        var wait = [pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)]
        // Rounded up: a wait of nothing would spin.
        let milliseconds = Int32(clamping: Int((max(.zero, limit) / .milliseconds(1)).rounded(.up)))
        guard poll(&wait, 1, milliseconds) > 0 else { return [] }
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = read(STDIN_FILENO, &chunk, chunk.count)
        guard count > 0 else { return count < 0 && errno == EINTR ? [] : nil }
        var lines: [String] = []
        for byte in chunk[..<count] {
            if byte == UInt8(ascii: "\n") {
                lines.append(String(decoding: partial, as: UTF8.self))
                partial.removeAll()
            } else if partial.count < Self.lineBytesMax {
                partial.append(byte)
            }
        }
        return lines
    }
}
