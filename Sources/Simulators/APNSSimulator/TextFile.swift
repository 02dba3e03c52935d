// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Writes small files for the programs that run beside a simulator.
enum TextFile {
    /// Replaces the file as a whole, so that a reader never sees a part of it.
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
    /// An error that describes the system call that has just failed on this thread.
    static func last(_ what: @autoclosure () -> String) -> SimulatorError {
        let code = errno
        return SimulatorError(description: "\(what()): \(String(cString: strerror(code)))")
    }
}
