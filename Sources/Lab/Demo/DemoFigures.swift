// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Everything that the view shows at one moment. A recording is one of these a line.
struct DemoFigures: Codable, Equatable, Sendable {
    enum Phase: String, Codable, Sendable {
        case starting, running, draining, judging, ended
    }

    struct Outcome: Codable, Equatable, Sendable {
        /// The status and Apple's reason.
        var name: String
        var count: Int
    }

    struct Worker: Codable, Equatable, Sendable {
        var process: Int32
        /// Since its start.
        var seconds: Int
    }

    struct Door: Codable, Equatable, Sendable {
        var isOpen = false
        /// It has just changed.
        var isLit = false
        /// From the event to the accepted push of the last change.
        var milliseconds: Double?
    }

    var phase = Phase.starting
    /// Since the first event.
    var seconds = 0
    var duration = 0
    var installations = 0
    var events = 0
    var eventsPerSecond = 0
    var accepted = 0
    var acceptedPerSecond = 0
    /// Every answer but 200, most frequent first.
    var refusals: [Outcome] = []
    /// Requests that APNs has and has not answered; nil before the simulator was asked.
    var inFlight: Int?
    /// Pairs of an event and a token without a push yet.
    var waiting = 0
    /// Events whose offset is not committed; nil before the group has answered.
    var lag: Int?
    /// From event to accepted push, in the last five seconds; nil when none was accepted.
    var p50ms: Double?
    var p99ms: Double?
    var workers: [Worker] = []
    var kills = 0
    var door = Door()
    /// Pushes accepted in each of the last seconds, the latest last.
    var history: [Int] = []
    /// What has happened, the latest last.
    var messages: [String] = []
    /// The demo disturbs itself: no key was pressed yet.
    var isScripted = true
    var result: String?
}

extension Int {
    /// With a comma between thousands.
    var grouped: String {
        let digits = String(magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0 && (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return self < 0 ? "-" + text : text
    }
}

/// Durations as people read them.
enum DurationText {
    /// `0:07`.
    static func clock(_ seconds: Int) -> String {
        "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60)"
    }

    /// `3 ms`, `1.2 s`; an en dash for none.
    static func milliseconds(_ value: Double?) -> String {
        guard let value else { return "–" }
        if value < 10 { return "\((value * 10).rounded() / 10) ms" }
        if value < 1000 { return "\(Int(value.rounded())) ms" }
        return "\((value / 100).rounded() / 10) s"
    }
}
