// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation
import Importing
import PushModel

/// Subjects by a key, from a CSV of two columns, key and subject: the subjects that a sender keeps in
/// another table than its tokens. A key may be on several lines. It stays on the disk; 16 bytes of each
/// line are in memory.
final class JoinFile {
    private let handle: FileHandle
    private let path: String
    /// Hashes of the keys, sorted, and where their lines begin.
    private var lines: [(hash: UInt32, offset: UInt64)] = []

    private static let lineBytesMax = 4096
    private static let linesMax = 20_000_000

    init(_ path: String) throws {
        self.path = path
        handle = try .input(path, prefix: "--join: ")
        try index()
        lines.sort { ($0.hash, $0.offset) < ($1.hash, $1.offset) }
    }

    deinit { try? handle.close() }

    private func index() throws {
        let input = try InputLines(path, option: "--join", lineBytesMax: Self.lineBytesMax)
        var offset = input.offset
        while try input.next() {
            try note(input.line, at: offset, input.number)
            offset = input.offset
        }
    }

    private func note(_ line: [UInt8], at offset: UInt64, _ number: Int) throws {
        guard let (key, _) = try pair(line, number) else { return }
        guard lines.count < Self.linesMax else {
            throw Failure(
                .unreadableInput, "--join: \(path) has more than \(Self.linesMax) lines")
        }
        lines.append((Self.hash(key), offset))
    }

    private func pair(_ line: [UInt8], _ number: Int?) throws -> (key: String, subject: String)? {
        var line = line
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard !line.isEmpty else { return nil }
        let place = number.map { ":\($0)" } ?? ""
        let fields: [String?]
        do throws(RowProblem) {
            fields = try line.withUnsafeBytes { bytes in
                Result { () throws(RowProblem) in
                    try DelimitedText.csv(bytes, delimiter: UInt8(ascii: ","))
                }
            }.get()
        } catch {
            throw Failure(.unreadableInput, "--join: \(path)\(place): \(error.reason)")
        }
        guard fields.count == 2 else {
            throw Failure(
                .unreadableInput,
                "--join: \(path)\(place) has \(fields.count) fields, and needs key and subject")
        }
        guard let key = fields[0], let subject = fields[1], !subject.isEmpty else { return nil }
        return (key, subject)
    }

    private static func hash(_ key: String) -> UInt32 {
        var key = key
        return key.withUTF8 {
            UInt32(
                truncatingIfNeeded: StableHash.hash64(UnsafeRawBufferPointer($0), seed: 0))
        }
    }

    /// The subjects of a key, in the order of the file.
    func subjects(of key: String) throws -> [String] {
        let hash = Self.hash(key)
        var low = 0
        var high = lines.count
        while low < high {
            let middle = (low + high) / 2
            if lines[middle].hash < hash { low = middle + 1 } else { high = middle }
        }
        var found: [String] = []
        while low < lines.count, lines[low].hash == hash {
            try handle.seek(toOffset: lines[low].offset)
            let piece = try handle.read(upToCount: Self.lineBytesMax + 1) ?? Data()
            let line = Array(piece.prefix { $0 != UInt8(ascii: "\n") })
            if let pair = try pair(line, nil), pair.key == key { found.append(pair.subject) }
            guard found.count <= RowMapper.subjectsMax else {
                throw RowProblem(
                    "its key has more than \(RowMapper.subjectsMax) lines in the join file")
            }
            low += 1
        }
        return found
    }
}
