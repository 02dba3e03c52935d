// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// How much this process may map. Reservations want far more than they use, which costs nothing
/// where there is no limit; where there is one, they must leave room for stacks, libraries and
/// heaps.
package struct AddressSpace: Sendable {
    /// The limit in bytes; nil where there is none.
    package let limit: Int?
    /// What limits it, and how to lift that.
    package let cause: String

    /// The address space of this process, as it was when first asked for.
    package static let current = AddressSpace()

    /// The least that is enough: 16 tables of the smallest size, and as much again for everything
    /// else.
    package static let limitMin = 32 * reservationMin
    /// The smallest reservation; tables of this size hold an index of some hundred thousand
    /// subscriptions.
    static let reservationMin = 64 << 20

    /// The largest reservation that leaves room for 15 others of its size and as much again.
    package var reservationMax: Int { limit.map { max(Self.reservationMin, $0 / 32) } ?? .max }

    package init(limit: Int?, cause: String) {
        self.limit = limit
        self.cause = cause
    }

    private init() {
        let limit = CLinux_addressSpaceLimit()
        if limit > 0 {
            self.init(limit: Int(clamping: limit), cause: "ulimit -v, which can be unlimited")
        } else if let free = Self.uncommittedBytes() {
            self.init(limit: free, cause: "vm.overcommit_memory=2, which can be 0")
        } else {
            self.init(limit: nil, cause: "")
        }
    }

    /// The bytes that the kernel has not promised yet, where it promises no more memory than there
    /// is; otherwise nil.
    private static func uncommittedBytes() -> Int? {
        guard text(of: "/proc/sys/vm/overcommit_memory").first == "2" else { return nil }
        var kibibytes: [String: Int] = [:]
        for line in text(of: "/proc/meminfo").split(separator: "\n") {
            let words = line.split { $0 == " " || $0 == ":" }
            if words.count >= 2 { kibibytes[String(words[0])] = Int(words[1]) }
        }
        guard let limit = kibibytes["CommitLimit"], let used = kibibytes["Committed_AS"] else {
            return nil
        }
        return max(0, limit - used) << 10
    }

    private static func text(of file: String) -> String {
        let descriptor = open(file, O_RDONLY)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 8 << 10, alignment: 1) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
        }
    }
}

/// Ends the process with a message: an optimised build would strip that of a trap, and a stack
/// trace would not explain what has happened.
enum OutOfSpace {
    @inline(never)
    static func cannotReserve(_ bytes: Int, code: CInt) -> Never {
        let space = AddressSpace.current
        let limit = space.limit.map { ": \($0 >> 20) MiB are allowed by \(space.cause)" } ?? ""
        CLinux_end(
            CInt(CLinux_badConfiguration),
            "cannot reserve \(bytes >> 20) MiB of address space (\(String(cString: strerror(code)))"
                + ")\(limit)")
    }

    /// - Parameter bytes: the size of the reservation that is full.
    @inline(never)
    static func isFull(_ bytes: Int) -> Never {
        let space = AddressSpace.current
        if let limit = space.limit {
            CLinux_end(
                CInt(CLinux_badConfiguration),
                "a table in memory is full at \(bytes >> 20) MiB, since the address space is "
                    + "limited to \(limit >> 20) MiB by \(space.cause)")
        }
        CLinux_end(
            CInt(CLinux_internalError),
            "a table in memory is full at \(bytes >> 20) MiB: one process can hold no more of its "
                + "kind; docs/capacity.md says what to do, under \"Where one index ends\"")
    }
}
