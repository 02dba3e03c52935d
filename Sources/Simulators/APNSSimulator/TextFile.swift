// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Small files for the programs that are started beside a simulator.
enum TextFile {
    /// Replaces the file as a whole: a reader that waits for it never sees a part.
    static func write(_ text: String, to path: String) throws(SimulatorError) {
        let draft = "\(path).draft"
        guard let file = fopen(draft, "w") else {
            throw SimulatorError(description: "cannot write \(path): errno \(errno)")
        }
        let isWritten = fputs(text, file) >= 0
        guard fclose(file) == 0, isWritten, rename(draft, path) == 0 else {
            throw SimulatorError(description: "cannot write \(path): errno \(errno)")
        }
    }
}
