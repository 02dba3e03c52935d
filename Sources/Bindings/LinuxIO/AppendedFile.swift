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
        precondition(bytesMax > 0, "a file for nothing")
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

    /// - Returns: how many bytes are left.
    private static func cutTornLine(_ descriptor: CInt, bytes: Int) throws(SystemError) -> Int {
        var end = bytes
        var last: UInt8 = 0
        while end > 0 {
            let count = pread(descriptor, &last, 1, end - 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { throw .last("pread") }
            if last == UInt8(ascii: "\n") { break }
            end -= 1
        }
        guard end < bytes else { return bytes }
        guard ftruncate(descriptor, end) == 0 else { throw .last("ftruncate") }
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
        guard rename(path, path + ".1") == 0 else { throw .last("rename") }
        let next = try Self.open(path)
        close(descriptor)
        (descriptor, bytes) = next
    }
}
