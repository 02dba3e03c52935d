// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import FlatMemory
package import PushModel

/// An index in a file: its tables as they are in memory, behind a head with what is to be known of them.
///
///     "LAMPLIDX" │ format, 4 │ bytes of the head, 4 │ CRC32C of the head, 4 │ 0, 4
///     head: the stamp, the seed of the hashes, outlines of the tables, notes of whoever wrote it
///     tokens: records, index, suppressions, free rows of these
///     subjects: records, lists, index
///     registrations: blocks, index
///     kinds: names, index
///
/// all within a `ChecksummedStream`. **Whoever changes the layout of a row, a hash or a size class
/// raises `format`**: a file of another format is not used.
package enum IndexSnapshot {
    /// Raised with every change of what a file means.
    package static let format: UInt32 = 2

    static let magic = Array("LAMPLIDX".utf8)
    static let preludeBytes = 24
    static let notesBytesMax = 64 << 20
}

/// What the four tables take in a file.
struct IndexOutline {
    var tokens: TokenTable.Outline
    var subjects: SubjectTable.Outline
    var registrations: RegistrationTable.Outline
    var kinds: KindTable.Outline

    var bytes: UInt64 { tokens.bytes + subjects.bytes + registrations.bytes + kinds.bytes }

    func write(to fields: inout FieldWriter) {
        tokens.write(to: &fields)
        subjects.write(to: &fields)
        registrations.write(to: &fields)
        kinds.write(to: &fields)
    }

    init(from fields: inout FieldReader) throws(SnapshotFault) {
        tokens = try TokenTable.Outline(from: &fields)
        subjects = try SubjectTable.Outline(from: &fields)
        registrations = try RegistrationTable.Outline(from: &fields)
        kinds = try KindTable.Outline(from: &fields)
    }

    init(_ audience: borrowing Audience) {
        tokens = TokenTable.Outline(audience.tokens)
        subjects = SubjectTable.Outline(audience.subjects)
        registrations = RegistrationTable.Outline(audience.registrations)
        kinds = KindTable.Outline(audience.kinds)
    }
}

extension Audience {
    /// About the bytes that the index takes in a file.
    package var snapshotBytes: Int { Int(clamping: IndexOutline(self).bytes) }

    /// Writes the index. Nothing may change it meanwhile, and no removed token may wait for
    /// `reclaimRemoved`.
    ///
    /// - Parameters:
    ///   - notes: what else the caller keeps with it, at most 64 MiB.
    ///   - sink: takes the bytes of the file in their order, at most a mebibyte at a time.
    package func write(
        _ stamp: SnapshotStamp, notes: [UInt8], to sink: @escaping ChecksummedOutput.Sink
    ) throws(SnapshotFault) {
        guard notes.count <= IndexSnapshot.notesBytesMax else {
            throw SnapshotFault("its notes take \(notes.count >> 20) MiB")
        }
        var head = FieldWriter()
        stamp.write(to: &head)
        head.append(keySeed)
        head.append(furtherLists.rawValue)
        IndexOutline(self).write(to: &head)
        head.append(notes)
        var output = ChecksummedOutput(sink)
        try output.write(IndexSnapshot.magic)
        var prelude = FieldWriter()
        prelude.append(IndexSnapshot.format)
        prelude.append(UInt32(head.bytes.count))
        prelude.append(head.bytes.withUnsafeBytes { CRC32C.of($0) })
        prelude.append(UInt32(0))
        try output.write(prelude.bytes)
        try output.write(head.bytes)
        try tokens.write(to: &output)
        try subjects.write(to: &output)
        try registrations.write(to: &output)
        try kinds.write(to: &output)
        try output.finish()
    }
}

/// An index in a file, of which the head has been read.
package struct SnapshotReader: ~Copyable {
    package let stamp: SnapshotStamp
    /// What whoever wrote it has kept with it.
    package let notes: [UInt8]
    private let hashSeed: UInt64
    private let furtherLists: FurtherLists
    private let outline: IndexOutline
    private var input: ChecksummedInput

    /// Reads and checks the head.
    ///
    /// - Parameters:
    ///   - bytes: the length of the file.
    ///   - source: reads from the file; it is asked for at most a mebibyte at a time, or the table of
    ///     checksums, and keeps what it needs to do so.
    package init(bytes: Int, _ source: @escaping ChecksummedInput.Source) throws(SnapshotFault) {
        // First, since the rest of another format may be anything.
        let length = try Self.prelude(bytes: bytes, source)
        var input = try ChecksummedInput(bytes: bytes, source)
        _ = try input.bytes(IndexSnapshot.preludeBytes - 4)
        // The zeros.
        _ = try input.bytes(4)
        let head = try input.bytes(length.head)
        guard head.withUnsafeBytes({ CRC32C.of($0) }) == length.checksum else {
            throw SnapshotFault("its head is damaged")
        }
        var fields = FieldReader(head)
        let stamp = try SnapshotStamp(from: &fields)
        let hashSeed = try fields.uint64()
        let furtherLists = FurtherLists(rawValue: try fields.uint16())
        let outline = try IndexOutline(from: &fields)
        let notes = try fields.value(most: IndexSnapshot.notesBytesMax)
        guard fields.left == 0, UInt64(input.left) == outline.bytes else {
            throw SnapshotFault("its head tells of other tables than it has")
        }
        self.stamp = stamp
        self.hashSeed = hashSeed
        self.furtherLists = furtherLists
        self.outline = outline
        self.notes = notes
        self.input = input
    }

    private static func prelude(
        bytes: Int, _ source: ChecksummedInput.Source
    ) throws(SnapshotFault) -> (head: Int, checksum: UInt32) {
        guard bytes >= IndexSnapshot.preludeBytes else { throw SnapshotFault("it is cut off") }
        var prelude = [UInt8](repeating: 0, count: IndexSnapshot.preludeBytes)
        try prelude.lendMutable { prelude throws(SnapshotFault) in
            try source(0, prelude)
        }
        guard prelude.starts(with: IndexSnapshot.magic) else {
            throw SnapshotFault("it is no snapshot of an index")
        }
        var fields = FieldReader(Array(prelude.dropFirst(IndexSnapshot.magic.count)))
        let format = try fields.uint32()
        guard format == IndexSnapshot.format else {
            throw SnapshotFault(
                "it has format \(format), and this version reads \(IndexSnapshot.format)")
        }
        return (Int(try fields.uint32()), try fields.uint32())
    }

    /// Reads the index and checks all of it. An index that is not sound in everything is not made.
    ///
    /// - Parameter routing: that of the stamp's fingerprint.
    package consuming func audience(
        routing: RoutingTable, furtherLists: FurtherLists
    ) throws(SnapshotFault) -> Audience {
        guard furtherLists == self.furtherLists,
            stamp.routing == SnapshotStamp.fingerprint(of: routing, furtherLists: furtherLists)
        else { throw SnapshotFault("it was made with other apps, environments or settings") }
        let (hashSeed, outline) = (hashSeed, outline)
        let tables = try IndexTables(
            outline, seed: hashSeed, routing: routing, furtherLists: furtherLists, from: input)
        return try Audience.audited(
            tables, routing: routing, hashSeed: hashSeed, furtherLists: furtherLists)
    }
}
