// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Everything that the view shows at one moment. Each line of a recording is one of these.
struct DemoFigures: Codable, Equatable, Sendable {
    enum Phase: String, Codable, Sendable {
        case starting, running, draining, judging, ended
    }

    struct Outcome: Codable, Equatable, Sendable {
        /// The status and the reason of the answer.
        var name: String
        var count: Int
    }

    struct Worker: Codable, Equatable, Sendable {
        var process: Int32
        /// How long the worker has been running.
        var seconds: Int
    }

    struct Door: Codable, Equatable, Sendable {
        var isOpen = false
        /// Whether the door has just changed, and is shown bright.
        var isLit = false
        /// The latency of the last change, from its event to the accepted push.
        var milliseconds: Double?
    }

    var phase = Phase.starting
    /// The time since the first event.
    var seconds = 0
    var duration = 0
    var installations = 0
    var events = 0
    var eventsPerSecond = 0
    var accepted = 0
    var acceptedPerSecond = 0
    /// The answers other than 200, the most frequent first.
    var refusals: [Outcome] = []
    /// The requests that APNs has not answered yet; nil before the simulator's first report.
    var inFlight: Int?
    /// The pairs of an event and a token that still wait for a push.
    var waiting = 0
    /// The events whose offsets are not committed; nil before the group's first answer.
    var lag: Int?
    /// The median latency from event to accepted push in the last five seconds; nil if none was
    /// accepted.
    var p50ms: Double?
    var p99ms: Double?
    var workers: [Worker] = []
    var kills = 0
    var door = Door()
    /// The pushes accepted in each of the last seconds, the latest last.
    var history: [Int] = []
    /// The address of the live page.
    var page: String?
    /// The messages, the latest last.
    var messages: [String] = []
    /// Whether the demo follows its script, because no key was pressed yet.
    var isScripted = true
    var result: String?
}

extension Int {
    /// The number with commas between thousands.
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

/// Formats durations for people.
enum DurationText {
    /// Minutes and seconds, such as `0:07`.
    static func clock(_ seconds: Int) -> String {
        "\(seconds / 60):" + (seconds % 60 < 10 ? "0" : "") + "\(seconds % 60)"
    }

    /// A duration such as `3 ms` or `1.2 s`; an en dash for nil.
    static func milliseconds(_ value: Double?) -> String {
        guard let value else { return "–" }
        if value < 10 { return "\((value * 10).rounded() / 10) ms" }
        if value < 1000 { return "\(Int(value.rounded())) ms" }
        return "\((value / 100).rounded() / 10) s"
    }
}
