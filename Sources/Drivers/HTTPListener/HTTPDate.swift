// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// The date of an answer (RFC 9110, 5.6.7).
enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// - Parameter seconds: since 1970.
    static func text(seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (weekday, month) = (days[Int(parts.tm_wday)], months[Int(parts.tm_mon)])
        let day = "\(weekday), \(padded(parts.tm_mday)) \(month)"
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(padded).joined(separator: ":")
        return "\(day) \(parts.tm_year + 1900) \(clock) GMT"
    }

    static var now: String { text(seconds: time(nil)) }
}
