// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Small files for the programs that are started beside a simulator.
enum TextFile {
    /// Replaces the file as a whole: a reader that waits for it never sees a part.
    static func write(_ text: String, to path: String) throws(SimulatorError) {
        let draft = "\(path).draft"
        guard let file = fopen(draft, "w") else { throw .last("cannot write \(path)") }
        let isWritten = fputs(text, file) >= 0
        guard fclose(file) == 0, isWritten, rename(draft, path) == 0 else {
            throw .last("cannot write \(path)")
        }
    }
}

extension SimulatorError {
    /// The failure of the system call that has just returned on this thread, in the system's words.
    static func last(_ what: @autoclosure () -> String) -> SimulatorError {
        let code = errno
        return SimulatorError(description: "\(what()): \(String(cString: strerror(code)))")
    }
}
