// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery

/// How a push ends, as far as docs/transports.md distinguishes ends.
enum PushEnd: Hashable, Sendable, CustomStringConvertible {
    case accepted
    /// Any status but 200, with what its body said.
    case refused(UInt16, APNSReason = .none)
    case unprocessed
    case unknown
    case expired

    init(_ outcome: PushOutcome) {
        self =
            switch outcome.kind {
            case .answered where outcome.status == 200: .accepted
            case .answered: .refused(outcome.status, outcome.reason)
            case .unprocessed: .unprocessed
            case .unknown: .unknown
            case .expired: .expired
            }
    }

    var description: String {
        switch self {
        case .accepted: "accepted"
        case .refused(let status, .none): "× \(status)"
        case .refused(let status, .unknown): "× \(status) with a reason unknown to us"
        case .refused(let status, let reason): "× \(status) \(reason.name)"
        case .unprocessed: "given back unsent"
        case .unknown: "unknown"
        case .expired: "expired"
        }
    }
}

/// What one transport promises about a behaviour: the suite verifies it and docs/transports.md
/// documents it.
struct Promise: Sendable {
    /// How many pushes end in each way; none may end in another way.
    var ends: [(end: PushEnd, count: ClosedRange<Int>)]
    /// How many connections the server accepts; nil if nothing is promised.
    var connections: ClosedRange<Int>?
    /// How many pushes the server accepts twice.
    var acceptedTwice = 0...0
    /// Whether the delivery thread uses less than a tenth of a CPU while it waits.
    var isIdle = false
    /// What else the run has verified.
    var also: [String] = []
    /// Why the transport cannot do better.
    var cannot: Shortcoming?

    init(
        _ ends: [(PushEnd, ClosedRange<Int>)], connections: ClosedRange<Int>? = nil,
        isIdle: Bool = false, also: [String] = [], cannot: Shortcoming? = nil
    ) {
        self.ends = ends.map { (end: $0.0, count: $0.1) }
        self.connections = connections
        self.isIdle = isIdle
        self.also = also
        self.cannot = cannot
    }

    /// All pushes end in one way.
    init(
        _ count: Int, _ end: PushEnd, connections: ClosedRange<Int>? = nil, isIdle: Bool = false,
        also: [String] = [], cannot: Shortcoming? = nil
    ) {
        self.init(
            [(end, count...count)], connections: connections, isIdle: isIdle, also: also,
            cannot: cannot)
    }

    /// The parts of the promise that a report breaks; empty if it is kept.
    func breaches(in report: Report) -> [String] {
        var breaches: [String] = []
        for (end, count) in ends where !count.contains(report.ends[end] ?? 0) {
            breaches.append("\(report.ends[end] ?? 0) \(end), promised \(Self.text(count))")
        }
        for (end, count) in report.ends where !ends.contains(where: { $0.end == end }) {
            breaches.append("\(count) \(end), promised none")
        }
        if report.lost > 0 { breaches.append("\(report.lost) without an outcome") }
        if report.strays > 0 { breaches.append("\(report.strays) outcomes too many") }
        if let connections, !connections.contains(report.connections) {
            breaches.append(
                "\(report.connections) connections, promised \(Self.text(connections))")
        }
        if !acceptedTwice.contains(report.acceptedTwice) {
            breaches.append("the server accepted \(report.acceptedTwice) twice")
        }
        if isIdle {
            switch report.busiest {
            case nil: breaches.append("its waiting was not measured")
            case let share? where share >= 0.1: breaches.append("busy while waiting: \(share)")
            default: break
            }
        }
        return breaches
    }

    /// A cell of the page.
    var text: String {
        var parts = [ends.map { "\(Self.text($0.count)) \($0.end)" }.joined(separator: ", ")]
        if let connections {
            let isOne = connections == 1...1
            parts.append("\(Self.text(connections)) connection\(isOne ? "" : "s")")
        }
        if isIdle { parts.append("idle") }
        parts += also
        if let cannot { parts.append("*\(cannot.rawValue)*") }
        return parts.joined(separator: "; ")
    }

    private static func text(_ count: ClosedRange<Int>) -> String {
        if count.lowerBound == count.upperBound { return grouped(count.lowerBound) }
        if count.upperBound == .max { return "\(grouped(count.lowerBound)) or more" }
        if count.lowerBound == 0 { return "up to \(grouped(count.upperBound))" }
        return "\(grouped(count.lowerBound)) to \(grouped(count.upperBound))"
    }

    /// A number with commas between thousands, such as 100,000.
    private static func grouped(_ number: Int) -> String {
        let digits = String(number)
        guard digits.count > 3 else { return digits }
        return grouped(number / 1000) + "," + digits.suffix(3)
    }
}

/// The result of one run.
struct Report {
    var ends: [PushEnd: Int] = [:]
    /// How many pushes had no outcome within a minute.
    var lost = 0
    /// How many outcomes were for pushes that were not handed over or already had one.
    var strays = 0
    var connections = 0
    /// Pushes that the server accepted more than once.
    var acceptedTwice = 0
    /// The greatest share of a CPU that the delivery thread used while it waited; nil if it was not
    /// measured.
    var busiest: Double?
}
