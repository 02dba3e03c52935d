// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Files that a kill or a power cut leaves either as they were or as they were meant to be.
enum DurableFile {
    struct Failure: Error, CustomStringConvertible {
        var call: String
        var path: String
        var code: Int32
        var description: String { "\(call) \(path): \(String(cString: strerror(code)))" }
    }

    /// Replaces a file as a whole: a reader sees the old content or the new one, and when the call
    /// returns the new one is on the disk.
    static func replace(_ url: URL, with data: Data) throws {
        let temporary = url.deletingLastPathComponent()
            .appendingPathComponent(".\(UUID().uuidString).temporary")
        do {
            try write(data, to: temporary)
            guard rename(temporary.path, url.path) == 0 else { throw failure("rename", url) }
        } catch {
            unlink(temporary.path)
            throw error
        }
        try synchronizeFolder(of: url)
    }

    /// Creates a file as a whole.
    ///
    /// - Returns: Whether it was this call that created it; false where it was there already.
    static func create(_ url: URL, with data: Data) throws -> Bool {
        let temporary = url.deletingLastPathComponent()
            .appendingPathComponent(".\(UUID().uuidString).temporary")
        defer { unlink(temporary.path) }
        try write(data, to: temporary)
        guard link(temporary.path, url.path) == 0 else {
            if errno == EEXIST { return false }
            throw failure("link", url)
        }
        try synchronizeFolder(of: url)
        return true
    }

    /// Deletes a file; one that is not there is no error.
    static func remove(_ url: URL) throws {
        guard unlink(url.path) == 0 || errno == ENOENT else { throw failure("unlink", url) }
    }

    /// Runs `body` while no other process and no other thread runs under the same lock. `body` must be
    /// short: iOS kills an app that it suspends while it holds a lock in an app group's folder.
    static func withLock<Result>(_ url: URL, _ body: () throws -> Result) throws -> Result {
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("open", url) }
        defer { close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw failure("flock", url) }
        }
        return try body()
    }

    private static func write(_ data: Data, to url: URL) throws {
        let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("open", url) }
        defer { close(descriptor) }
        try protect(url)
        try data.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                #if canImport(Darwin)
                    let count = Darwin.write(
                        descriptor, bytes.baseAddress! + written, bytes.count - written)
                #else
                    let count = Glibc.write(
                        descriptor, bytes.baseAddress! + written, bytes.count - written)
                #endif
                guard count >= 0 || errno == EINTR else { throw failure("write", url) }
                written += max(0, count)
            }
        }
        try synchronize(descriptor, url)
    }

    private static func synchronizeFolder(of url: URL) throws {
        let folder = url.deletingLastPathComponent()
        let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", folder) }
        defer { close(descriptor) }
        try synchronize(descriptor, folder)
    }

    private static func synchronize(_ descriptor: Int32, _ url: URL) throws {
        #if canImport(Darwin)
            // fsync leaves the data in the drive's cache on Apple's systems; see its manual page.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else { throw failure("fsync", url) }
    }

    /// Readable from the first unlock after a start, so that a push handler that runs on a locked
    /// device can write.
    private static func protect(_ url: URL) throws {
        #if canImport(Darwin) && !os(macOS)
            try FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication],
                ofItemAtPath: url.path)
        #endif
    }

    private static func failure(_ call: String, _ url: URL) -> Failure {
        let code = errno
        return Failure(call: call, path: url.path, code: code)
    }
}
