// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A file that is read at any place, and that nobody else could have written.
package final class PrivateFile {
    private let descriptor: CInt
    /// As it was when the file was opened.
    package let bytes: Int
    /// When it was last changed, in milliseconds since 1970, by this machine's clock.
    package let changedAt: Int64

    package enum Problem: Error, CustomStringConvertible {
        case system(SystemError)
        case notRegular
        case writableByOthers

        package var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .notRegular: "it is no regular file"
            case .writableByOthers: "others than this user may write it"
            }
        }
    }

    /// Nil if there is no such file.
    package static func open(path: String) throws(Problem) -> PrivateFile? {
        // A pipe would be waited for otherwise.
        let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw .system(.last("open")) }
        return try PrivateFile(descriptor)
    }

    private init(_ descriptor: CInt) throws(Problem) {
        self.descriptor = descriptor
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        bytes = Int(status.st_size)
        changedAt =
            Int64(status.st_mtim.tv_sec) * 1000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
        guard isKnown else { throw .system(.last("fstat")) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
        guard status.st_uid == geteuid() || status.st_uid == 0, status.st_mode & 0o022 == 0 else {
            throw .writableByOthers
        }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    }

    /// Removes the file; no file is no error.
    package static func remove(path: String) throws(SystemError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .last("unlink") }
    }

    deinit { close(descriptor) }

    /// Fills the buffer with what is at this offset. Throws `EIO` where the file has ended.
    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer)
        throws(SystemError)
    {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress! + done, buffer.count - done, offset + done)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last("pread") }
            guard count > 0 else { throw SystemError(call: "pread", code: EIO) }
            done += count
        }
    }
}
