// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// Address space at a fixed place, zero filled, that costs memory only where it is written: a
/// structure grows inside it without copying, and its peak is its size.
@usableFromInline
package struct Reservation: ~Copyable, @unchecked Sendable {
    // SAFETY: not copyable, so whoever holds it is its one owner and a move hands it over whole.
    @usableFromInline let base: UnsafeMutableRawPointer
    package let bytes: Int

    /// The size of a huge page on x86-64 and on arm64 with 4 KiB pages.
    private static let hugePageBytes = 2 << 20

    /// Reserves `bytes` or, where the address space is limited, a share of it. Where the kernel
    /// refuses even that (valgrind), half is tried, and half of that, down to
    /// `AddressSpace.reservationMin`. When that is refused too the process ends, and says why.
    /// - Parameter bytes: rounded up to whole pages.
    package init(bytes: Int) {
        let page = Int(getpagesize())
        let most = min(max(bytes, 1), AddressSpace.current.reservationMax)
        var wanted = (most + page - 1) / page * page
        var base = CLinux_reserve(wanted)
        while base == nil, wanted / 2 >= AddressSpace.reservationMin {
            wanted = wanted / 2 / page * page
            base = CLinux_reserve(wanted)
        }
        guard let base else { OutOfSpace.cannotReserve(wanted, code: errno) }
        self.base = base
        self.bytes = wanted
        preferHugePages()
    }

    deinit { munmap(base, bytes) }

    /// Gives the whole pages inside this range back; they read as zero afterwards.
    package func discard(offset: Int, count: Int) {
        let page = Int(getpagesize())
        let start = (offset + page - 1) / page * page
        let end = (offset + count) / page * page
        if start < end { madvise(base + start, end - start, MADV_DONTNEED) }
    }

    /// A lookup in gigabytes otherwise misses the address cache as often as the memory cache. The
    /// first huge page is left out, so that a small structure stays small.
    private func preferHugePages() {
        let skipped = 2 * Self.hugePageBytes
        guard bytes > skipped else { return }
        // Advice only: a kernel without huge pages refuses, and nothing is lost.
        let start = (Int(bitPattern: base) + skipped - 1) / Self.hugePageBytes * Self.hugePageBytes
        let offset = start - Int(bitPattern: base)
        madvise(base + offset, bytes - offset, MADV_HUGEPAGE)
    }
}
