// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation
import Importing
import PushModel
import Worker

/// Reads the rows of another sender's files. Those that are bad are listed and counted.
struct ImportRows {
    let input: ImportInput
    let mapper: RowMapper
    let options: ImportOptions
    let join: JoinFile?
    let now: WallTime

    init(_ options: ImportOptions, _ mapper: RowMapper, join: JoinFile? = nil) throws {
        self.options = options
        self.mapper = mapper
        self.join = join
        input = try ImportInput(options.files)
        now = RecordWriter.now().wall
    }

    /// Reads all files once.
    ///
    /// - Parameters:
    ///   - progress: is told how many bytes have been read, now and then.
    ///   - body: is given each row, and throws `RowProblem` for one that it finds bad.
    func read(
        _ badRows: BadRows, _ progress: (Int) throws -> Void,
        _ body: (MappedRow) throws -> Void
    ) throws {
        var reader: RowReader?
        let joined: (String) throws -> [String] = { [join] in try join?.subjects(of: $0) ?? [] }
        try input.read { file, piece, done in
            let each: RowReader.Body = { line, values in
                do {
                    try body(try mapper.row(values.get(), line: line, now: now, joined: joined))
                } catch let problem as RowProblem {
                    try badRows.note(file, line, problem.reason)
                }
            }
            do {
                if reader == nil { reader = try makeReader() }
                if piece.isEmpty {
                    try reader!.finish(each)
                    reader = nil
                } else {
                    try reader!.take(piece, each)
                }
            } catch let problem as SourceProblem {
                throw Failure(.unreadableInput, "\(file): \(problem.reason)")
            }
            try progress(done)
        }
    }

    private func makeReader() throws -> RowReader {
        try RowReader(
            mapper.format, wanted: mapper.wanted, optional: mapper.optional,
            names: options.fields?.split(separator: ",", omittingEmptySubsequences: false)
                .map(String.init),
            delimiter: options.separator())
    }
}

/// Lists rows that are no registrations, with their lines and reasons.
final class BadRows {
    private let file: FileHandle?
    private let countMax: Int
    private let isSilent: Bool
    private(set) var count = 0

    private static let shown = 20

    /// Those of a first reading, which are listed by the second.
    static var ofTrial: BadRows { BadRows() }

    private init() {
        countMax = .max
        isSilent = true
        file = nil
    }

    init(_ options: ImportOptions) throws {
        countMax = options.badMax
        isSilent = false
        guard let path = options.bad else {
            file = nil
            return
        }
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let handle = FileHandle(forWritingAtPath: path)
        else { throw Failure(.unreadableInput, "--bad: \(path) cannot be written") }
        file = handle
    }

    func note(_ name: String, _ line: Int, _ reason: String) throws {
        count += 1
        if isSilent { return }
        let text = "\(name):\(line): \(reason.printable)\n"
        if let file {
            try file.write(contentsOf: Data(text.utf8))
        } else if count <= Self.shown {
            FileHandle.standardError.write(Data("bad row \(text)".utf8))
        } else if count == Self.shown + 1 {
            FileHandle.standardError.write(
                Data("more rows are bad: --bad names a file that lists them all\n".utf8))
        }
        guard count <= countMax else {
            throw Failure(
                .unreadableInput,
                "more than \(countMax) rows are bad, the last at \(name):\(line): \(reason.printable); "
                    + "what was written so far stays. Look at --columns, or raise --bad-max")
        }
    }
}

/// Says on standard error how far a command has come, and how long it may take still.
struct ImportProgress {
    private let bytes: Int?
    private let start = ContinuousClock.now
    private var nextAt: ContinuousClock.Instant
    private static let interval = Duration.seconds(5)

    init(of bytes: Int?) {
        self.bytes = bytes
        nextAt = .now + Self.interval
    }

    mutating func note(_ done: Int, rows: Int) {
        guard ContinuousClock.now >= nextAt else { return }
        nextAt = .now + Self.interval
        FileHandle.standardError.write(Data((text(done, rows: rows) + "\n").utf8))
    }

    private func text(_ done: Int, rows: Int) -> String {
        guard let bytes, bytes > 0, done > 0 else { return rows.counted("row") }
        let share = min(1, Double(done) / Double(bytes))
        let elapsed = start.duration(to: .now) / .seconds(1)
        let left = Int((elapsed / share - elapsed).rounded(.up))
        return "\(rows.counted("row")), \(Int(share * 100)) %, about \(left) s left"
    }
}
