// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Glibc
internal import Testing

@Suite struct `A column of flat memory` {
    @Test func `a column keeps its elements where they are while it grows`() {
        var column = Column<UInt64>(capacity: 1 << 20)
        for value in 0..<100_000 { column.append(UInt64(value)) }
        column[99_999] += 1
        #expect(column.count == 100_000)
        #expect(column[0] == 0)
        #expect(column[99_999] == 100_000)
        #expect(column.bytes == 800_000)
    }

    @Test func `a column pops what was appended last, and nothing from nothing`() {
        var column = Column<UInt32>(capacity: 8)
        column.append(7)
        #expect(column.popLast() == 7)
        #expect(column.popLast() == nil)
    }

    @Test func `a column reads as filled after it has shrunk and grown again`() {
        var column = Column<UInt32>(capacity: 8)
        column.resize(to: 4, filling: 1)
        column.resize(to: 1, filling: 0)
        column.resize(to: 3, filling: 9)
        #expect([column[0], column[1], column[2]] == [1, 9, 9])
    }

    @Test func `a column ends the process beyond its capacity, and traps beyond its end`() async {
        await #expect(processExitsWith: .exitCode(70)) {
            var column = Column<UInt32>(capacity: 2)
            column.resize(to: 3, filling: 0)
        }
        await #expect(processExitsWith: .failure) {
            let column = Column<UInt32>(capacity: 2)
            _ = column[0]
        }
    }
}

@Suite struct `A free list` {
    @Test func `a free list hands out rows in order and freed ones first`() {
        var rows = FreeList(first: 1, capacity: 100)
        #expect([rows.take(), rows.take(), rows.take()] == [1, 2, 3])
        rows.give(2)
        #expect(rows.count == 2)
        #expect([rows.take(), rows.take()] == [2, 4])
        #expect(rows.end == 5)
        #expect(rows.count == 4)
    }
}

@Suite struct `A byte arena` {
    @Test func `a byte arena reuses a freed block for the same size and for no other`() {
        var arena = ByteArena(reservedBytes: 1 << 20)
        let first = arena.allocate(bytes: 20)
        #expect(first != 0)
        arena.free(first, bytes: 20)
        #expect(arena.freeBytes == 24)
        #expect(arena.allocate(bytes: 40) != first)
        #expect(arena.allocate(bytes: 17) == first)
        #expect(arena.freeBytes == 0)
    }

    @Test func `a byte arena wastes less than an eighth of a block over 512 bytes`() {
        for wanted in [513, 1_000, 4_097, 70_000, 1_000_001] {
            var arena = ByteArena(reservedBytes: 1 << 22)
            let before = arena.bytes
            _ = arena.allocate(bytes: wanted)
            let taken = arena.bytes - before
            #expect(taken >= wanted)
            #expect(taken - wanted <= wanted / 8 + 8)
        }
    }

    @Test func `a byte arena keeps blocks apart through a random life`() {
        var arena = ByteArena(reservedBytes: 1 << 26)
        var random = SplitMix(state: 42)
        var blocks: [(reference: UInt32, bytes: [UInt8])] = []
        for step in 0..<20_000 {
            if blocks.count < 50 || step % 3 != 0, blocks.count < 500 {
                let count = 1 + random.below(step % 100 == 0 ? 100_000 : 700)
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: step), count: count)
                let reference = arena.allocate(bytes: count)
                bytes.withUnsafeBytes { arena.write($0, to: reference, offset: 0) }
                blocks.append((reference, bytes))
            } else {
                let index = random.below(blocks.count)
                let (reference, bytes) = blocks.remove(at: index)
                let intact = bytes.withUnsafeBytes { arena.holds($0, at: reference, offset: 0) }
                #expect(intact, "step \(step)")
                arena.free(reference, bytes: bytes.count)
            }
        }
        for (reference, bytes) in blocks {
            let intact = bytes.withUnsafeBytes { arena.holds($0, at: reference, offset: 0) }
            #expect(intact)
        }
        #expect(arena.bytes < 40 << 20, "freed blocks are not reused")
    }

    @Test func `a byte arena says so when it is full, and ends the process`() async throws {
        let end = await #expect(
            processExitsWith: .exitCode(70), observing: [\.standardErrorContent]
        ) {
            var arena = ByteArena(reservedBytes: 4096)
            _ = arena.allocate(bytes: 5000)
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("a table in memory is full") && said.contains("docs/capacity.md"))
    }

    @Test func `a byte arena names the limit of the address space when that is what made it small`()
        async throws
    {
        let end = await #expect(
            processExitsWith: .exitCode(78), observing: [\.standardErrorContent]
        ) {
            var limit = rlimit(rlim_cur: 64 << 30, rlim_max: 64 << 30)
            guard setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0 else { return }
            // All of these fit, and leave room for as much again.
            let arenas = (0..<5).map { _ in Arena() }
            _ = arenas[0].memory.allocate(bytes: 1 << 30)
            _ = arenas[0].memory.allocate(bytes: 3 << 30)
        }
        let said = String(decoding: try #require(end).standardErrorContent, as: UTF8.self)
        #expect(said.contains("limited to 65536 MiB by ulimit -v"))
    }
}

/// A share of the address space.
private final class Arena { var memory = ByteArena() }

@Suite struct `A limited address space` {
    @Test func `a limited address space gives each table a share, and none below what is of use`() {
        #expect(AddressSpace(limit: nil, cause: "").reservationMax == .max)
        #expect(AddressSpace(limit: 64 << 30, cause: "").reservationMax == 2 << 30)
        #expect(AddressSpace(limit: 1 << 30, cause: "").reservationMax == 64 << 20)
        #expect(AddressSpace.limitMin == 2 << 30)
    }
}

/// A small seeded generator: a failure repeats.
private struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
