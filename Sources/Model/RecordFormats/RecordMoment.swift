// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// When a record was written and when it is read. The instants that its producer gives as numbers are
/// held against both, since a number does not say its unit, and one in another unit is a time so far
/// away that it outlasts all that is right.
package struct RecordMoment: Sendable {
    let written: WallTime
    let read: WallTime

    /// - Parameter written: the record's timestamp, or `read` where it has none.
    package init(written: WallTime, read: WallTime) {
        self.written = written
        self.read = read
    }

    /// An instant that a producer gives in seconds since 1970.
    enum Instant: String {
        /// Of two changes of a Live Activity the later one counts.
        case timestamp
        case staleDate = "stale-date"
        /// One in the past means at once.
        case dismissalDate = "dismissal-date"

        /// From the record on, in seconds; nil where any is as good.
        fileprivate var earliest: Double? {
            switch self {
            case .timestamp: -86_400
            case .staleDate, .dismissalDate: nil
            }
        }

        fileprivate var latest: Double {
            switch self {
            case .timestamp: 3600
            case .staleDate, .dismissalDate: 7 * 86_400
            }
        }

        fileprivate var words: String {
            switch self {
            case .timestamp:
                "must be within a day before and an hour after its record's time"
            case .staleDate, .dismissalDate:
                "must be within 7 days after its record's time"
            }
        }
    }

    /// The units that instants are written in by mistake, and what makes seconds since 1970 of them.
    private static let units: [(name: String, seconds: @Sendable (Double) -> Double)] = [
        ("milliseconds", { $0 / 1e3 }), ("microseconds", { $0 / 1e6 }),
        ("nanoseconds", { $0 / 1e9 }), ("seconds since 2001", { $0 + 978_307_200 }),
        ("milliseconds since 2001", { $0 / 1e3 + 978_307_200 }),
    ]

    /// What is wrong with an instant; nil if nothing is.
    func problem(of seconds: Double, _ instant: Instant) -> String? {
        let unit = Self.units.first { isNear($0.seconds(seconds), instant) }
        if isIn(seconds, instant), unit == nil || instant.earliest != nil { return nil }
        return "payload.aps.\(instant.rawValue) \(instant.words), in seconds since 1970"
            + (unit.map { ": \($0.name)?" } ?? "")
    }

    /// Whether a record's timestamp is one. Some producers give none, 0, or seconds since 1970
    /// where milliseconds are wanted, which are of January 1970.
    @inline(__always) @inlinable
    package static func isTimestamp(_ timestamp: WallTime) -> Bool {
        timestamp.milliseconds >= 978_307_200_000  // 2001
    }

    /// How far after a time an instant may be that a record gives of itself.
    package enum Lead: Int64 {
        case ofEvent = 3_600_000
        /// A suppression repeats a registration's instant, which may be an hour after that one's
        /// record, and is perhaps written by a worker whose clock is behind.
        case ofSuppression = 7_200_000

        package static let ofRegistration = ofEvent
    }

    /// Whether an instant is after a time by more than that. Producers may give any number, so only
    /// what cannot overflow is subtracted.
    package static func isFar(_ instant: WallTime, after time: WallTime, _ lead: Lead) -> Bool {
        time.milliseconds >= 0 && instant > time
            && instant.milliseconds - time.milliseconds > lead.rawValue
    }

    /// When something was registered, as its record gives it. An instant far after the record is a
    /// mistake: no answer of APNs about the token would count, or no later registration of it.
    static func registeredAt(
        _ given: WallTime, writtenAt timestamp: WallTime, _ lead: Lead
    ) -> WallTime {
        isTimestamp(timestamp) && isFar(given, after: timestamp, lead) ? timestamp : given
    }

    /// The unit of a number where a text is needed, as far as it can be told; nil for what is no number.
    static func unit(of value: JSONValue) -> String? {
        let text = value.string.map { String(decoding: $0.prefix(24), as: UTF8.self) }
        guard let number = value.double ?? text.flatMap({ Double($0) }) else { return nil }
        switch number {
        case 1e8..<1e11: return "seconds"
        case 1e11..<1e14: return "milliseconds"
        case 1e14..<1e17: return "microseconds"
        case 1e17..<1e20: return "nanoseconds"
        default: return nil
        }
    }

    private func isIn(_ seconds: Double, _ instant: Instant) -> Bool {
        if let earliest = instant.earliest, seconds < first + earliest { return false }
        return seconds <= last + instant.latest
    }

    /// Whether it is a time that a producer would give of this record.
    private func isNear(_ seconds: Double, _ instant: Instant) -> Bool {
        seconds >= first - 86_400 && seconds <= last + max(instant.latest, 86_400)
    }

    private var first: Double { Double(min(written, read).milliseconds) / 1000 }
    private var last: Double { Double(max(written, read).milliseconds) / 1000 }
}
