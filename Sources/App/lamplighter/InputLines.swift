// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation

/// The lines of a file or of standard input, one after the other, each of a bounded length.
final class InputLines {
    /// What errors call it.
    private let name: String
    private let handle: FileHandle
    private let lineBytesMax: Int
    private var piece = Data()
    private var position = 0
    /// The line that was read last, without its end.
    private(set) var line: [UInt8] = []
    /// Its number, from 1.
    private(set) var number = 0
    /// Where the next one begins.
    private(set) var offset: UInt64 = 0

    private static let pieceBytes = 256 << 10

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - option: which option names it, for errors.
    init(_ path: String, option: String? = nil, lineBytesMax: Int) throws {
        let prefix = option.map { "\($0): " } ?? ""
        name = prefix + (path == "-" ? "standard input" : path)
        self.lineBytesMax = lineBytesMax
        handle = try .input(path, prefix: prefix)
    }

    deinit { if handle !== FileHandle.standardInput { try? handle.close() } }

    /// What is wrong with the line that was read last.
    func failure(_ what: String) -> Failure {
        Failure(.unreadableInput, "\(name):\(number): \(what)")
    }

    /// Reads the next line.
    /// - Returns: false at the end.
    func next() throws -> Bool {
        line.removeAll(keepingCapacity: true)
        var isThere = false
        while try hasBytes() {
            if !isThere { number += 1 }
            isThere = true
            let rest = piece[(piece.startIndex + position)...]
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            line.append(contentsOf: rest[..<(end ?? rest.endIndex)])
            let next = (end.map { $0 + 1 } ?? rest.endIndex) - piece.startIndex
            offset += UInt64(next - position)
            position = next
            guard line.count <= lineBytesMax else {
                throw failure("it is longer than \(lineBytesMax) bytes")
            }
            if end != nil { break }
        }
        return isThere
    }

    /// Whether there is more, which it reads where `piece` has come to its end.
    private func hasBytes() throws -> Bool {
        if position < piece.count { return true }
        piece = try handle.read(upToCount: Self.pieceBytes) ?? Data()
        position = 0
        return !piece.isEmpty
    }
}

extension FileHandle {
    /// Opens what a user has named.
    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - prefix: what an error begins with.
    static func input(_ path: String, prefix: String = "") throws -> FileHandle {
        if path == "-" { return .standardInput }
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw Failure(.unreadableInput, "\(prefix)\(path) does not exist or cannot be read")
        }
        return handle
    }
}
