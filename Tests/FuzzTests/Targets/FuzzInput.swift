// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Takes an input apart from the front. Text targets use lines, so that a person can write an
/// input: a line `-` stands for nothing.
struct FuzzInput {
    private(set) var rest: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

    /// Takes a byte; 0 at the end.
    mutating func byte() -> UInt8 { bytes(1).first ?? 0 }

    /// Takes this number of bytes, or as many as are left.
    mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer {
        let taken = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        return taken
    }

    /// Takes a line without its end, or the rest if no line ends; nil if nothing is left.
    mutating func line() -> UnsafeRawBufferPointer? {
        guard !rest.isEmpty else { return nil }
        let line = bytes(rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.count)
        _ = bytes(1)
        return line
    }

    /// A line in memory of its own size; nil for `-`.
    mutating func field() -> ExactBytes? {
        guard let line = line(), !line.elementsEqual("-".utf8) else { return nil }
        return ExactBytes(line)
    }

    /// Takes a record's timestamp, if a line such as `@-1` gives one.
    mutating func timestamp() -> WallTime {
        guard rest.first == UInt8(ascii: "@"), let line = line() else { return RecordWorld.now }
        let number = Int64(String(decoding: line.dropFirst(), as: UTF8.self))
        return number.map { WallTime(milliseconds: $0) } ?? RecordWorld.now
    }

    /// What is left in memory of its own size; nil for `-`.
    var value: ExactBytes? { rest.elementsEqual("-".utf8) ? nil : ExactBytes(rest) }
}

/// A copy that ends where its memory ends, so that the address sanitizer sees a read beyond it.
final class ExactBytes {
    let lent: UnsafeRawBufferPointer

    init(_ bytes: some Collection<UInt8>) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copy.copyBytes(from: bytes)
        lent = UnsafeRawBufferPointer(copy)
    }

    deinit { lent.deallocate() }
}

extension ExactBytes? {
    /// Lends the bytes, or their absence.
    func lend<Result>(_ body: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(self?.lent) }
    }
}

/// Lends the key and the value of a record.
func lend<Result>(
    _ key: ExactBytes?, _ value: ExactBytes?,
    _ body: (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?) throws -> Result
) rethrows -> Result {
    try key.lend { key in try value.lend { value in try body(key, value) } }
}
