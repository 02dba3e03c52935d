// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import HTTPListener
internal import Logging

/// The bodies of `/log-level`: `{"level":"debug"}`, or just the word in a request.
struct LogLevelRequest: Codable {
    var level: Logger.Level

    static let remedy =
        "the body must be one of "
        + Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        + ", or JSON as in {\"level\":\"debug\"}"

    /// Reads the level that a request asks for; nil if the body names none.
    static func level(in body: [UInt8]) -> Logger.Level? {
        if let request = try? JSONDecoder().decode(LogLevelRequest.self, from: Data(body)) {
            return request.level
        }
        let word = String(decoding: body, as: UTF8.self).filter { !$0.isWhitespace }
        return Logger.Level(rawValue: word)
    }

    static func answer(_ level: Logger.Level) -> HTTPAnswer {
        .json("{\"level\":\"\(level.rawValue)\"}")
    }
}
