// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A file of lines that grows at its end and that only its owner can read. When it has become too large
/// it gives its place to a new one and is called `<path>.1`; an older one of that name is removed.
package final class AppendedFile {
    private let path: String
    private let bytesMax: Int
    private var descriptor: CInt
    private var bytes: Int

    /// Continues a file that is there. What a crash has left behind the last end of a line is cut off.
    ///
    /// - Parameter bytesMax: the most bytes of the file, unless one piece has more.
    /// - Throws: `EWOULDBLOCK` where another process is writing the file.
    package init(path: String, bytesMax: Int) throws(SystemError) {
        precondition(bytesMax > 0, "a file may have at least one byte")
        self.path = path
        self.bytesMax = bytesMax
        (descriptor, bytes) = try Self.open(path)
    }

    deinit { close(descriptor) }

    private static func open(_ path: String) throws(SystemError) -> (CInt, Int) {
        // A pipe would be waited for otherwise.
        let flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let descriptor = Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw .last("open") }
        do throws(SystemError) {
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .last("flock") }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .last("fstat") }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw SystemError(call: "open", code: EEXIST)
            }
            guard fchmod(descriptor, 0o600) == 0 else { throw .last("fchmod") }
            return (descriptor, try cutTornLine(descriptor, bytes: Int(status.st_size)))
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// So far back the end of a line is looked for: a file without one is not ours.
    private static let lineBytesMax = 64 << 10

    /// - Returns: how many bytes are left.
    /// - Throws: `EEXIST` where the end of a line is not among the last bytes.
    private static func cutTornLine(_ descriptor: CInt, bytes: Int) throws(SystemError) -> Int {
        var last = [UInt8](repeating: 0, count: min(bytes, lineBytesMax))
        let start = bytes - last.count
        var count: Int
        repeat {
            count = pread(descriptor, &last, last.count, off_t(start))
        } while count < 0 && errno == EINTR
        guard count == last.count else { throw .last("pread") }
        let line = last.lastIndex(of: UInt8(ascii: "\n"))
        guard line != nil || start == 0 else { throw SystemError(call: "open", code: EEXIST) }
        let end = start + (line.map { $0 + 1 } ?? 0)
        guard end < bytes else { return bytes }
        guard ftruncate(descriptor, off_t(end)) == 0 else { throw .last("ftruncate") }
        return end
    }

    /// Writes whole lines.
    package func append(_ lines: UnsafeRawBufferPointer) throws(SystemError) {
        if bytes > 0, bytes + lines.count > bytesMax { try rotate() }
        var rest = lines
        while let start = rest.baseAddress, rest.count > 0 {
            let count = write(descriptor, start, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                let error = SystemError.last("write")
                // A part of a line would make the next one unreadable.
                if ftruncate(descriptor, bytes) != 0 { bytes += lines.count - rest.count }
                throw error
            }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
        bytes += lines.count
    }

    private func rotate() throws(SystemError) {
        // It has its name already where the next file could not be opened before.
        guard rename(path, path + ".1") == 0 || errno == ENOENT else { throw .last("rename") }
        let next = try Self.open(path)
        close(descriptor)
        (descriptor, bytes) = next
    }
}
