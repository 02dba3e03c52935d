// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Importing
internal import PushModel
internal import RecordFormats
internal import RegistrarRules
internal import Zlib

/// A file of another sender. The input: the format's name on the first line, how many bytes come at once
/// on the second, and the file, which may be gzip.
enum ImportsTarget {
    private static let columns: [RowField: String] = [
        .token: "token", .installation: "id", .lastSeen: "seen", .dead: "dead",
        .optedOut: "muted", .environment: "environment", .tokenClass: "class",
    ]
    private static let names = [
        "id", "token", "seen", "dead", "muted", "environment", "class", "s",
    ]

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let word = input.line().map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard let format = SourceFormat(rawValue: word) else { return }
        let count = input.line().flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 64
        let pieceBytes = max(1, min(count, 1 << 20))
        let isOwn = [.csv, .ndjson, .copy].contains(format)
        var mapper = try RowMapper(
            format, columns: isOwn ? columns : [:], templates: [SubjectTemplate("x-{s}")])
        mapper.app = "com.example.Garden"
        mapper.environment = .production
        let whole = try rows(Array(input.rest), mapper, pieceBytes: .max)
        let pieces = try rows(Array(input.rest), mapper, pieceBytes: pieceBytes)
        try promise(whole == pieces, "rows depend on how the file comes in")
    }

    /// What each row says, and where the reading has ended.
    private static func rows(
        _ bytes: [UInt8], _ mapper: RowMapper, pieceBytes: Int
    ) throws -> [String] {
        var found: [String] = []
        var decoder = RegistrationDecoder(
            routing: RecordWorld.large, recordBytesMax: 1 << 20)
        do {
            var reader = try RowReader(
                mapper.format, wanted: mapper.wanted, optional: mapper.optional,
                names: mapper.format == .copy ? names : nil)
            let body: RowReader.Body = { line, values in
                do {
                    let row = try mapper.row(values.get(), line: line, now: RecordWorld.now)
                    found.append("\(line) \(row)")
                    if case .row(let row) = row { try promiseRecord(row, &decoder) }
                } catch let problem as RowProblem {
                    try promiseLine(problem.reason)
                    found.append("\(line) \(problem.reason)")
                }
            }
            try expanded(bytes, pieceBytes) { try reader.take($0, body) }
            try reader.finish(body)
        } catch let problem as SourceProblem {
            try promiseLine(problem.reason)
            found.append(problem.reason)
        } catch is GzipError {
            // How much of a damaged file is expanded depends on its pieces.
            return []
        }
        return found
    }

    private static func expanded(
        _ bytes: [UInt8], _ pieceBytes: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        var gzip = bytes.starts(with: [0x1F, 0x8B]) ? try GzipExpansion() : nil
        var (rest, sum) = (bytes[...], 0)
        while !rest.isEmpty {
            let piece = ExactBytes(rest.prefix(pieceBytes))
            try withExtendedLifetime(piece) {
                guard gzip != nil else { return try body(piece.lent) }
                try gzip!.expand(piece.lent) {
                    sum += $0.count
                    // What a small input expands to would take the fuzzer's time.
                    if sum <= 1 << 20 { try body($0) }
                }
            }
            rest = rest.dropFirst(pieceBytes)
        }
        try gzip?.finish()
    }

    /// What a row becomes is read by every worker.
    private static func promiseRecord(
        _ row: ImportedRow, _ decoder: inout RegistrationDecoder
    ) throws {
        guard row.standing == .live else { return }
        var draft = RegistrationDraft(
            environment: row.environment, app: row.app, installation: row.installation ?? "x",
            handler: ImportedRegistration.handler(of: row.tokenClass))
        draft.registeredAt = row.lastSeen
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: row.tokenClass, token: row.token,
                shows: [RegistrationDraft.Show(kind: nil, subjects: row.subjects)])
        ]
        var read = Registration()
        let (key, value) = (
            ExactBytes(RegistrationEncoder.key(draft)), ExactBytes(RegistrationEncoder.value(draft))
        )
        do throws(UnreadableRecord) {
            let change = lend(key, value) { key, value in
                Result { () throws(UnreadableRecord) in
                    try decoder.decode(
                        key: key, value: value, timestamp: RecordWorld.now, into: &read)
                }
            }
            _ = try change.get()
        } catch {
            throw BrokenPromise(description: "no worker reads it: \(error.message)")
        }
        try promise(read.rows.count == row.subjects.count, "\(read.rows.count) rows")
    }
}
