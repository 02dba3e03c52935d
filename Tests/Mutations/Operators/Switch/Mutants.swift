// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc

// Is added to each module of the private copy that has mutants, so each module has its own.

/// The mutant that this process is; 0 is the unbroken program.
private let chosen: UInt32 =
    getenv("LAMPLIGHTER_MUTANT").flatMap { UInt32(String(cString: $0), radix: 16) } ?? 0

/// A byte for each mutant, which is 1 once it has been reached; nil where nobody asks. It is the
/// memory of a file, so a process that dies leaves what it has reached.
nonisolated(unsafe) private let reached: UnsafeMutablePointer<UInt8>? = {
    guard let path = getenv("LAMPLIGHTER_MUTANTS_REACHED") else { return nil }
    let file = open(path, O_RDWR)
    guard file >= 0 else { return nil }
    let memory = mmap(nil, 1 << 24, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    close(file)
    guard let memory, memory != MAP_FAILED else { return nil }
    return memory.assumingMemoryBound(to: UInt8.self)
}()

/// Whether the code around it is to be broken.
@inline(never)
func mutant(_ id: UInt32) -> Bool {
    if let reached { reached[Int(id)] = 1 }
    return id == chosen
}

/// A condition; its opposite if it is to be broken.
@inline(never)
func mutantNegates(_ id: UInt32, _ condition: Bool) -> Bool {
    mutant(id) != condition
}
