// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A file that is written under another name and takes its own at once when it is complete, so that
/// nobody ever finds half of it. Only its owner can read it.
///
/// One process writes it at a time. What a process has left that was killed meanwhile is overwritten by
/// the next.
package final class ReplacedFile {
    private let path: String
    private let descriptor: CInt
    private var isInPlace = false

    private var temporary: String { Self.temporary(path) }
    private static func temporary(_ path: String) -> String { path + ".new" }

    /// - Throws: `EWOULDBLOCK` where another process is writing the file.
    package init(path: String) throws(SystemError) {
        self.path = path
        let name = Self.temporary(path)
        // A pipe would be waited for otherwise.
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let descriptor = open(name, flags, 0o600)
        guard descriptor >= 0 else { throw .last("open") }
        self.descriptor = descriptor
        do throws(SystemError) {
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .last("flock") }
            // Its writer may have put it in place between the two calls: it is another file then.
            var (opened, named) = (stat(), stat())
            guard fstat(descriptor, &opened) == 0 else { throw .last("fstat") }
            guard opened.st_mode & S_IFMT == S_IFREG else {
                throw SystemError(call: "open", code: EEXIST)
            }
            guard lstat(name, &named) == 0 || errno == ENOENT else { throw .last("lstat") }
            guard opened.st_ino == named.st_ino, opened.st_dev == named.st_dev else {
                throw SystemError(call: "flock", code: EWOULDBLOCK)
            }
            guard fchmod(descriptor, 0o600) == 0 else { throw .last("fchmod") }
            guard ftruncate(descriptor, 0) == 0 else { throw .last("ftruncate") }
        } catch {
            // Not in place and not ours to remove.
            isInPlace = true
            throw error
        }
    }

    deinit {
        if !isInPlace { unlink(temporary) }
        close(descriptor)
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var rest = bytes
        while let start = rest.baseAddress, rest.count > 0 {
            let count = Glibc.write(descriptor, start, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .last("write") }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
    }

    /// Puts the file in its place.
    ///
    /// - Parameter synchronising: waits until the disk has it. Otherwise the file may be damaged after
    ///   a crash of the machine, which is to be seen by its content.
    package func replace(synchronising: Bool) throws(SystemError) {
        if synchronising, fsync(descriptor) != 0 { throw .last("fsync") }
        guard rename(temporary, path) == 0 else { throw .last("rename") }
        isInPlace = true
        guard synchronising else { return }
        let folder = open(Self.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .last("open") }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw .last("fsync") }
    }

    /// Why no file of the folder can be replaced; nil if that is not known.
    package static func problem(in folder: String) -> SystemError? {
        access(folder, W_OK | X_OK) == 0 ? nil : .last("access")
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
