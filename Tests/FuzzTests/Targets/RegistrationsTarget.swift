// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats

/// A record of the registrations topic. The input: perhaps its timestamp (`@-1`), the key, the
/// value.
enum RegistrationsTarget {
    private static let rowsMax = 500

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let timestamp = input.timestamp()
        let key = input.field()
        let value = input.value
        var decoder = RegistrationDecoder(
            routing: RecordWorld.large, rowsMax: rowsMax, recordBytesMax: 64 << 10)
        var read = Registration()
        let change: RegistrationChange
        do throws(UnreadableRecord) {
            change = try decode(key, value, timestamp, &decoder, into: &read)
        } catch { return try promiseReason(error) }
        try promiseBounds(of: read)
        guard change == .replaced else {
            return try promise(value == nil && read.rows.isEmpty, "rows of what was removed")
        }
        var again = Registration()
        let rewritten = RegistrationEncoder.value(try draft(of: read))
        do throws(UnreadableRecord) {
            // The normalised key finds what the written one did.
            _ = try decode(
                ExactBytes(read.key), ExactBytes(rewritten), timestamp, &decoder, into: &again)
        } catch { throw BrokenPromise(description: "written again: \(error.message)") }
        try promise(
            again.key == read.key && again.app == read.app
                && again.environment == read.environment
                && again.registeredAt.rfc3339 == read.registeredAt.rfc3339
                && again.rows.map { again.content(of: $0) }
                    == read.rows.map { read.content(of: $0) },
            "written again it says otherwise")
    }

    private static func decode(
        _ key: ExactBytes?, _ value: ExactBytes?, _ timestamp: WallTime,
        _ decoder: inout RegistrationDecoder, into registration: inout Registration
    ) throws(UnreadableRecord) -> RegistrationChange {
        let change = lend(key, value) { key, value in
            Result { () throws(UnreadableRecord) in
                try decoder.decode(
                    key: key, value: value, timestamp: timestamp, into: &registration)
            }
        }
        return try change.get()
    }

    private static func promiseBounds(of read: Registration) throws {
        try promise(read.rows.count <= rowsMax, "\(read.rows.count) rows")
        for row in read.rows {
            for slice in [row.token, row.kind, row.subject] {
                try promise(
                    Int(slice.offset) + Int(slice.count) <= read.bytes.count,
                    "a slice outside of the bytes")
            }
            try promise(
                (1...RecordLimits.tokenBytesMax).contains(Int(row.token.count))
                    && row.kind.count <= RecordLimits.kindBytesMax
                    && row.subject.count <= RecordLimits.subjectBytesMax,
                "a row beyond the bounds")
        }
    }

    /// Each row as a target of its own, in the order of the rows.
    private static func draft(of read: Registration) throws -> RegistrationDraft {
        let key = String(decoding: read.key, as: UTF8.self)
        let parts = key.split(separator: "/").map(String.init)
        try promise(parts.count == 4, "a key of \(parts.count) parts")
        var draft = RegistrationDraft(
            environment: read.environment, app: parts[1], installation: parts[2],
            handler: parts[3])
        draft.registeredAt = read.registeredAt
        draft.targets = read.rows.map { row in
            let content = read.content(of: row)
            let kind = content.kind.isEmpty ? nil : String(decoding: content.kind, as: UTF8.self)
            let subject = String(decoding: content.subject, as: UTF8.self)
            var target = RegistrationDraft.Target(
                tokenClass: row.tokenClass, token: content.token,
                shows: [.init(kind: kind, subjects: subject.isEmpty ? [] : [subject])])
            target.hearsChanges = row.hearsChanges && row.tokenClass == .device
            return target
        }
        return draft
    }
}

/// What a row says, wherever its bytes are.
private struct RowContent: Equatable {
    let tokenClass: TokenClass
    let hearsChanges: Bool
    let token: [UInt8]
    let kind: [UInt8]
    let subject: [UInt8]
}

extension Registration {
    fileprivate func content(of row: Row) -> RowContent {
        RowContent(
            tokenClass: row.tokenClass, hearsChanges: row.hearsChanges, token: content(row.token),
            kind: content(row.kind), subject: content(row.subject))
    }

    private func content(_ slice: Slice) -> [UInt8] {
        Array(bytes[Int(slice.offset)..<Int(slice.offset) + Int(slice.count)])
    }
}
