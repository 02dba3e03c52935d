// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// For the compiler `winsize` is of this module where glibc is 2.41, and of Glibc where it is older.
internal import CLinux
internal import Glibc

/// The terminal, with single keys instead of lines, nothing echoed, and a screen of its own.
/// `deinit` gives it back as it was; a process that is killed before leaves it to `reset`(1).
package final class Terminal {
    private var before = termios()

    /// Whether standard input and output both are a terminal.
    package static var isThere: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

    package init() throws(SystemError) {
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { throw .last("tcgetattr") }
        var raw = before
        // Ctrl-C stays a signal.
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        guard tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 else { throw .last("tcsetattr") }
        // The alternate screen, and no cursor.
        StandardOutput.write("\u{1B}[?1049h\u{1B}[?25l")
    }

    deinit {
        StandardOutput.write("\u{1B}[?25h\u{1B}[?1049l")
        tcsetattr(STDIN_FILENO, TCSANOW, &before)
    }

    /// Columns and rows; 80 by 24 where nobody knows.
    package static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// The keys that were pressed, waiting for the first one at most so long. A signal ends the
    /// wait.
    package func keys(waiting limit: Duration) -> [UInt8] {
        var wait = [pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)]
        let milliseconds = Int32(limit / .milliseconds(1))
        guard Glibc.poll(&wait, 1, milliseconds) > 0 else { return [] }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        return count > 0 ? Array(buffer[..<count]) : []
    }
}

/// Standard output, without the C library's buffer.
package enum StandardOutput {
    /// Writes all of the text, however slow the reader.
    /// - Returns: false if the output is gone, such as a pipe that nobody reads any more.
    @discardableResult
    package static func write(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var start = 0
            while start < bytes.count {
                let count = Glibc.write(
                    STDOUT_FILENO, bytes.baseAddress! + start, bytes.count - start)
                if count < 0 && errno == EINTR { continue }
                if count <= 0 { return false }
                start += count
            }
            return true
        }
    }
}
