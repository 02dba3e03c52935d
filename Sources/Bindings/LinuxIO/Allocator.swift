// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux

/// The C library's allocator, which Kafka's and HTTP's libraries use.
package enum Allocator {
    /// Gives memory back to the system that a burst has left behind. Call it before there are
    /// threads.
    ///
    /// By default each thread gets a heap of its own, which keeps what other threads free, and the
    /// size from which a block is mapped and unmapped by itself grows with the largest one freed:
    /// under back-pressure, fetched batches of Kafka's then stay for ever in the heaps of as many
    /// threads as there are brokers.
    package static func returnFreedMemory() {
        // Two: Kafka's threads allocate while the planner frees.
        mallopt(M_ARENA_MAX, 2)
        mallopt(M_MMAP_THRESHOLD, 256 << 10)
        mallopt(M_TRIM_THRESHOLD, 1 << 20)
    }

    /// Gives back every whole page that is free, wherever in a heap it lies: by itself the library
    /// gives back only what is free at a heap's end, which one small block that stays keeps there.
    /// Takes milliseconds for each hundred megabytes, in which other threads that allocate wait.
    package static func trim() {
        malloc_trim(0)
    }
}
