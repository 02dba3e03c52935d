// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

@testable internal import Audience

/// A file in memory.
struct SnapshotBytes {
    var bytes: [UInt8] = []

    static let stamp = SnapshotStamp(
        cluster: "a-cluster",
        tables: [
            SnapshotStamp.Table(
                topic: "registrations",
                partitions: [
                    TablePosition(
                        next: 12,
                        last: TablePosition.LastRecord(
                            offset: 10, hash: StableHash.Value(high: 3, low: 4))),
                    TablePosition(next: 0, last: nil),
                ]),
            SnapshotStamp.Table(
                topic: "suppressions",
                partitions: [TablePosition(next: 7, last: nil)]),
        ],
        asOf: WallTime(milliseconds: 1_795_000_000_000), routing: fingerprint([]),
        tombstonesLast: .seconds(7200))

    static func fingerprint(_ furtherLists: FurtherLists) -> StableHash.Value {
        SnapshotStamp.fingerprint(of: AudienceFixture.routing, furtherLists: furtherLists)
    }

    init() {}

    init(_ audience: borrowing Audience, _ furtherLists: FurtherLists = []) throws(SnapshotFault) {
        var stamp = Self.stamp
        stamp.routing = Self.fingerprint(furtherLists)
        let sink = ByteSink()
        try audience.write(stamp, notes: Array("notes".utf8)) { bytes throws(SnapshotFault) in
            sink.bytes.append(contentsOf: bytes)
        }
        bytes = sink.bytes
    }

    private final class ByteSink { var bytes: [UInt8] = [] }

    func reader() throws(SnapshotFault) -> SnapshotReader {
        let bytes = bytes
        return try SnapshotReader(bytes: bytes.count) { offset, buffer throws(SnapshotFault) in
            guard offset >= 0, offset + buffer.count <= bytes.count else {
                throw SnapshotFault("it is read where it has nothing")
            }
            buffer.copyBytes(from: bytes[offset..<offset + buffer.count])
        }
    }

    func audience(_ furtherLists: FurtherLists = []) throws(SnapshotFault) -> Audience {
        try reader().audience(routing: AudienceFixture.routing, furtherLists: furtherLists)
    }

    /// Why the file is not used; nil if it is.
    func refusal(_ furtherLists: FurtherLists = []) -> String? {
        do throws(SnapshotFault) {
            _ = try audience(furtherLists)
            return nil
        } catch {
            return error.reason
        }
    }

    /// The length of what the table of checksums is about.
    var dataBytes: Int { bytes.count - 16 - 4 * ((bytes.count + (1 << 20) - 1) >> 20) }

    /// Changes the data, and makes all checksums right again, as somebody would who means harm.
    mutating func forge(_ change: (inout [UInt8]) -> Void) {
        var data = Array(bytes.prefix(dataBytes))
        change(&data)
        if data.count >= 24 {
            let length = Int(data[12]) | Int(data[13]) << 8 | Int(data[14]) << 16
            let head = data[min(24, data.count)..<min(24 + length, data.count)]
            let checksum = Array(head).withUnsafeBytes { CRC32C.of($0) }
            withUnsafeBytes(of: checksum.littleEndian) { data.replaceSubrange(16..<20, with: $0) }
        }
        let sink = ByteSink()
        var output = ChecksummedOutput { bytes throws(SnapshotFault) in
            sink.bytes.append(contentsOf: bytes)
        }
        // Memory takes everything.
        try! output.write(data)
        try! output.finish()
        bytes = sink.bytes
    }
}

extension Audience {
    /// All that the index knows, in lines that do not depend on where anything lies in memory.
    func dump(withTimes: Bool = true) -> [String] {
        var lines: [String] = []
        tokens.index.forEach { row in
            let token = TokenID(rawValue: row)
            let suppression = tokens.suppression(of: token)
            let time = withTimes ? "at \(registeredAt(of: token).milliseconds)" : ""
            lines.append(
                "token \(name(token)) \(time) \(tokens.references(of: token)) "
                    + "pending \(pending(token)) "
                    + (suppression.map { "\($0.status) \($0.reason) \($0.registeredAt)" } ?? "-"))
        }
        subjects.forEach { subject in
            let entries = (0..<count(subject)).map { position in
                let entry = entry(subject, at: position)
                return "\(name(entry.token)) \(name(entry.kind, of: entry.token)) "
                    + "\(entry.hearsChanges)"
            }
            lines.append(
                "\(scope(of: subject)) \(app(of: subject)) \(subjectName(subject)): "
                    + entries.sorted().joined(separator: ", "))
        }
        registrations.index.forEach { block in
            let header = registrations.blocks[block, as: RegistrationTable.Header.self]
            var rows: [String] = []
            registrations.forEachRow(of: block) { row in
                let subject =
                    row.subject == Subscription.noSubject ? "-" : subjectName(row.subject)
                rows.append("\(name(row.token)) \(subject) \(name(row.kind, of: row.token))")
            }
            lines.append(
                "registration \(header.hashLow) \(header.hashMiddle): "
                    + rows.sorted().joined(separator: ", "))
        }
        return lines.sorted()
    }

    private func name(_ token: TokenID) -> String {
        "\(route(of: token).rawValue)/\(tokenName(token))"
    }

    private func name(_ kind: KindID, of token: TokenID) -> String {
        name(of: kind, in: AudienceFixture.routing[route(of: token)].app)
    }
}
