// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation
import PushModel
import Simdjson

/// Reads a log of pushes, one JSON object a line, push by push. Of a line only its time and its token's
/// name are read.
final class PushLogReader {
    private let name: String
    private let handle: FileHandle
    private let side: PushComparison.Side
    private var parser = JSONParser(bytesMax: PushLogReader.lineBytesMax, depthMax: 16)
    private var piece = Data()
    private var position = 0
    private var line: [UInt8] = []
    private(set) var lineNumber = 0
    /// The push that is next; nil at the end.
    private(set) var next: PushComparison.Push?

    private static let lineBytesMax = 64 << 10
    private static let pieceBytes = 256 << 10

    /// - Parameter path: `-` for standard input.
    init(_ path: String, _ side: PushComparison.Side) throws {
        name = path == "-" ? "standard input" : path
        self.side = side
        if path == "-" {
            handle = .standardInput
        } else if let opened = FileHandle(forReadingAtPath: path) {
            handle = opened
        } else {
            throw Failure(.unreadableInput, "\(path) does not exist or cannot be read")
        }
        try advance()
    }

    /// Goes on to the next push.
    func advance() throws {
        repeat {
            guard try readLine() else {
                next = nil
                return
            }
        } while line.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r") }
        next = try push()
    }

    /// What is wrong with the line that was read last.
    func failure(_ what: String) -> Failure {
        Failure(.unreadableInput, "\(name):\(lineNumber): \(what)")
    }

    /// - Returns: false at the end.
    private func readLine() throws -> Bool {
        line.removeAll(keepingCapacity: true)
        var isThere = false
        while true {
            if position == piece.count {
                guard let more = try handle.read(upToCount: Self.pieceBytes), !more.isEmpty else {
                    break
                }
                (piece, position) = (more, 0)
            }
            if !isThere { lineNumber += 1 }
            isThere = true
            let rest = piece[(piece.startIndex + position)...]
            let end = rest.firstIndex(of: UInt8(ascii: "\n"))
            line.append(contentsOf: rest[..<(end ?? rest.endIndex)])
            position = (end.map { $0 + 1 } ?? rest.endIndex) - piece.startIndex
            guard line.count <= Self.lineBytesMax else {
                throw failure("it is longer than \(Self.lineBytesMax) bytes")
            }
            if end != nil { break }
        }
        return isThere
    }

    private func push() throws -> PushComparison.Push {
        let read = line.withUnsafeBytes { bytes -> (at: WallTime?, token: UInt64?)? in
            guard let object = (try? parser.parse(bytes))?.object else { return nil }
            return (Self.instant(object["at"]), Self.token(object))
        }
        guard let read else { throw failure("it is no JSON object") }
        guard let at = read.at else {
            throw failure(
                "it has no member at with an instant: RFC 3339, or seconds or milliseconds since 1970"
            )
        }
        guard let token = read.token else {
            throw failure(
                "it has neither tokenSHA256, 64 hexadecimal digits, nor tokenID, the first 16 of them"
            )
        }
        return PushComparison.Push(side: side, token: token, at: at)
    }

    private static func instant(_ value: JSONValue?) -> WallTime? {
        if let text = value?.string.flatMap({ String(validating: $0, as: UTF8.self) }) {
            return WallTime(rfc3339: text)
        }
        guard let number = value?.double ?? value?.integer.map(Double.init), number > 0 else {
            return nil
        }
        // Seconds of today have ten digits, milliseconds thirteen.
        let milliseconds = number < 1e11 ? number * 1000 : number
        return milliseconds < 1e15 ? WallTime(milliseconds: Int64(milliseconds)) : nil
    }

    private static func token(_ object: JSONObject) -> UInt64? {
        func digits(_ value: JSONValue?, _ bytes: Int) -> UInt64? {
            value?.string.flatMap { String(validating: $0, as: UTF8.self) }
                .flatMap { Hexadecimal.decode($0) }
                .flatMap { $0.count == bytes ? TokenName.number($0) : nil }
        }
        return digits(object["tokenID"], 8) ?? digits(object["tokenSHA256"], 32)
    }
}
