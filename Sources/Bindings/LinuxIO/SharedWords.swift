// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import Synchronization

/// A small file mapped into memory, of which one process at a time has the use: eight-byte words
/// that are stored without a system call and outlive the process however it ends, and text behind
/// them. They do not outlive the machine: nothing is synchronised to a disk.
package final class SharedWords: @unchecked Sendable {
    // SAFETY: the words are atomics; the text is touched by `init` and `rewrite` alone, which are
    // called by one owner before it lends the words.
    private let base: UnsafeMutableRawPointer
    private let descriptor: CInt

    /// The size of the whole file.
    package static let bytes = 64 << 10
    package static let words = 8
    package static let textBytesMax = bytes - words * MemoryLayout<UInt64>.size

    /// Opens the file, or makes it with all words 0 and no text.
    /// - Throws: `EWOULDBLOCK` where another process has the use of it.
    package init(path: String) throws(SystemError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .last("open") }
        do throws(SystemError) {
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .last("flock") }
            // Allocated, since a store into a hole would be a SIGBUS on a full disk.
            let code = posix_fallocate(descriptor, 0, Self.bytes)
            guard code == 0 else { throw SystemError(call: "posix_fallocate", code: code) }
            let mapped = mmap(
                nil, Self.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            guard let mapped, mapped != MAP_FAILED else { throw .last("mmap") }
            base = mapped
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    deinit {
        munmap(base, Self.bytes)
        close(descriptor)
    }

    /// - Precondition: `index` is below `words`.
    package subscript(index: Int) -> UInt64 {
        get { word(index).pointee.load(ordering: .acquiring) }
        set { word(index).pointee.store(newValue, ordering: .releasing) }
    }

    private func word(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(
            index >= 0 && index < Self.words, "a word's index lies within the page's words")
        return base.assumingMemoryBound(to: Atomic<UInt64>.self) + index
    }

    /// The text behind the words, up to the first zero byte.
    package var text: String {
        let text = UnsafeRawBufferPointer(
            start: base + Self.words * MemoryLayout<UInt64>.size, count: Self.textBytesMax)
        return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// Replaces the text, cut to `textBytesMax`.
    package func rewrite(text: String) {
        let bytes = Array(text.utf8.prefix(Self.textBytesMax))
        let start = base + Self.words * MemoryLayout<UInt64>.size
        UnsafeMutableRawBufferPointer(start: start, count: bytes.count).copyBytes(from: bytes)
        memset(start + bytes.count, 0, Self.textBytesMax - bytes.count)
    }
}
