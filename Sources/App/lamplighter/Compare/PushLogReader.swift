// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import Foundation
import PushModel
import Simdjson

/// Reads a log of pushes, one JSON object a line, push by push. Of a line only its time and its token's
/// name are read.
final class PushLogReader {
    /// Which pushes count. A line that says nothing of its app or class is taken for one that does.
    struct Filter {
        var app: String?
        var tokenClass: TokenClass?
    }

    private let lines: InputLines
    private let side: PushComparison.Side
    private let filter: Filter
    private var parser = JSONParser(bytesMax: PushLogReader.lineBytesMax, depthMax: 16)
    /// The push that is next; nil at the end.
    private(set) var next: PushComparison.Push?

    private static let lineBytesMax = 64 << 10

    /// - Parameter path: `-` for standard input.
    init(_ path: String, _ side: PushComparison.Side, _ filter: Filter = Filter()) throws {
        lines = try InputLines(path, lineBytesMax: Self.lineBytesMax)
        self.side = side
        self.filter = filter
        try advance()
    }

    /// Goes on to the next push that counts.
    func advance() throws {
        next = nil
        while next == nil, try lines.next() {
            let isBlank = lines.line.allSatisfy {
                $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\r")
            }
            if !isBlank { next = try push() }
        }
    }

    /// What is wrong with the line that was read last.
    func failure(_ what: String) -> Failure { lines.failure(what) }

    /// - Returns: nil for one that does not count.
    private func push() throws -> PushComparison.Push? {
        let read = lines.line.withUnsafeBytes {
            bytes -> (at: WallTime?, token: UInt64?, counts: Bool)? in
            guard let object = (try? parser.parse(bytes))?.object else { return nil }
            return (Self.instant(object["at"]), Self.token(object), counts(object))
        }
        guard let read else { throw failure("it is no JSON object") }
        guard read.counts else { return nil }
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

    private func counts(_ object: JSONObject) -> Bool {
        func isOther(_ name: StaticString, than wanted: String?) -> Bool {
            guard let wanted, let text = object[name]?.string else { return false }
            return !text.elementsEqual(wanted.utf8)
        }
        return !isOther("app", than: filter.app)
            && !isOther("class", than: filter.tokenClass?.name)
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
