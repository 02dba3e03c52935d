// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// The bounds of the formats (docs/schemas holds the same figures).
package enum RecordLimits {
    package static let version: Int64 = 1
    package static let subjectBytesMax = 256
    package static let kindBytesMax = 256
    package static let kindsMax = 64
    /// Apple's bound on `apns-collapse-id`.
    package static let collapseIDBytesMax = 64
    package static let keyPartBytesMax = 128
    /// Apple bounds no token; a path must fit the header list. 1,024 digits.
    package static let tokenBytesMax = 512
    package static let reasonBytesMax = 64
    /// Kafka's own bound on a topic's name.
    static let kafkaTopicBytesMax = 249
    /// APNs stores a push for 30 days at most.
    package static let ttlSecondsMax: Int64 = 30 * 86_400
}

/// Typed reading of members, with messages that name the member and never quote it.
extension JSONValue {
    func text(
        _ name: StaticString, bytes range: ClosedRange<Int>
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard let text = string, range.contains(text.count) else {
            throw .field(
                "\(name)", "a string of \(range.lowerBound) to \(range.upperBound) bytes")
        }
        return text
    }

    func integer(
        _ name: StaticString, in range: ClosedRange<Int64>
    ) throws(UnreadableRecord) -> Int64 {
        guard let integer, range.contains(integer) else {
            throw .field(
                "\(name)", "an integer from \(range.lowerBound) to \(range.upperBound)")
        }
        return integer
    }

    func instant(_ name: StaticString) throws(UnreadableRecord) -> WallTime {
        guard let text = string, let instant = WallTime(rfc3339: text) else {
            throw .field("\(name)", "an RFC 3339 instant such as 2026-11-21T06:12:00.123Z")
        }
        return instant
    }

    func environment(_ name: StaticString) throws(UnreadableRecord) -> PushEnvironment {
        guard let text = string, let environment = PushEnvironment(text) else {
            throw .field("\(name)", "production or development")
        }
        return environment
    }

    func elements(_ name: StaticString) throws(UnreadableRecord) -> JSONArray {
        guard let array else { throw .field("\(name)", "an array") }
        return array
    }

    /// The only version there is.
    func checkVersion() throws(UnreadableRecord) {
        guard integer == RecordLimits.version else {
            throw UnreadableRecord(
                .unknownVersion, "v is not 1: the record was written for a later release")
        }
    }
}

extension PushEnvironment {
    init?(_ name: UnsafeRawBufferPointer) {
        if name.equals("production") {
            self = .production
        } else if name.equals("development") || name.equals("sandbox") {
            self = .development
        } else {
            return nil
        }
    }
}

extension TokenClass {
    private static let words = NameTable(allCases.map { ($0.name, $0) })

    init?(_ word: UnsafeRawBufferPointer) {
        guard let known = Self.words.find(word) else { return nil }
        self = known
    }
}

extension String {
    init(_ bytes: UnsafeRawBufferPointer) { self.init(decoding: bytes, as: UTF8.self) }
}
