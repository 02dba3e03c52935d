// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Worker

/// Fits lines of text into a terminal's window.
enum ScreenLines {
    /// Breaks lines that are too long, and leaves out the last ones where there is no room, so that
    /// the first are always seen. A last row then says how many are missing.
    static func fit(_ lines: [String], columns: Int, rows: Int) -> [String] {
        let (columns, rows) = (max(1, columns), max(1, rows))
        let pieces = lines.flatMap { broken($0, at: columns) }
        guard pieces.count > rows else { return pieces }
        let missing = "… and \((pieces.count - rows + 1).counted("row")) more: enlarge the window"
        return pieces.prefix(rows - 1) + [String(missing.prefix(columns))]
    }

    private static func broken(_ line: String, at columns: Int) -> [String] {
        var pieces: [String] = []
        var rest = line[...]
        repeat {
            let piece = rest.prefix(columns)
            pieces.append(String(piece))
            rest = rest.dropFirst(piece.count)
        } while !rest.isEmpty
        return pieces
    }
}
