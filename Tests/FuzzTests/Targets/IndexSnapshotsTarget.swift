// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import PushModel

/// A file with an index. The input: the file without its checksums, which are made here, so that what
/// is changed is not refused for them.
enum IndexSnapshotsTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        try check(Array(input), isSealed: false)
        try check(sealed(Array(input)), isSealed: true)
    }

    private static func check(_ file: [UInt8], isSealed: Bool) throws {
        for lists in [.kindWide, [.kindWide, .installations]] as [FurtherLists] {
            try check(file, lists, isSealed: isSealed)
        }
    }

    private static func check(
        _ file: [UInt8], _ furtherLists: FurtherLists, isSealed: Bool
    ) throws {
        let bytes = ExactBytes(file)
        do throws(SnapshotFault) {
            let reader = try SnapshotReader(bytes: file.count) {
                offset, buffer throws(SnapshotFault) in
                guard offset >= 0, offset + buffer.count <= bytes.lent.count else {
                    throw SnapshotFault("it is read beyond its end")
                }
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(
                        rebasing: bytes.lent[offset..<offset + buffer.count]))
            }
            var audience = try reader.audience(
                routing: RecordWorld.small, furtherLists: furtherLists)
            audience.checkInvariants()
            use(&audience)
        } catch {
            return try promiseLine(error.reason)
        }
        try promise(isSealed, "a file without checksums is taken for an index")
    }

    /// Applies a registration, and removes it again.
    private static func use(_ audience: inout Audience) {
        var registration = Registration()
        registration.environment = .production
        registration.app = AppID(rawValue: 0)
        registration.key = Array("production/com.example.Home/i/h".utf8)
        registration.registeredAt = RecordWorld.now
        for number in 0..<3 {
            let (token, kind, subject) = (
                Array("token-\(number)".utf8), Array("kind-\(number)".utf8),
                Array("subject-\(number)".utf8)
            )
            registration.rows.append(
                Registration.Row(
                    tokenClass: .control, hearsChanges: true,
                    token: token.withUnsafeBytes { registration.append($0) },
                    kind: kind.withUnsafeBytes { registration.append($0) },
                    subject: subject.withUnsafeBytes { registration.append($0) }))
        }
        var changes = AudienceChanges()
        _ = audience.apply(registration, changes: &changes)
        audience.reclaimRemoved()
        audience.checkInvariants()
        _ = registration.key.withUnsafeBytes { audience.remove(key: $0, changes: &changes) }
        audience.reclaimRemoved()
        audience.reclaimKinds()
        audience.checkInvariants()
    }

    /// The input with right checksums, of the head too.
    private static func sealed(_ input: [UInt8]) -> [UInt8] {
        var data = input
        if data.count >= 24 {
            let length = Int(data[12]) | Int(data[13]) << 8 | Int(data[14]) << 16
            let checksum = Array(data[24..<min(24 + length, data.count)]).withUnsafeBytes {
                CRC32C.of($0)
            }
            withUnsafeBytes(of: checksum.littleEndian) { data.replaceSubrange(16..<20, with: $0) }
        }
        let file = Memory()
        var output = ChecksummedOutput { file.bytes.append(contentsOf: $0) }
        // Memory takes everything.
        try? output.write(data)
        try? output.finish()
        return file.bytes
    }

    private final class Memory { var bytes: [UInt8] = [] }
}
