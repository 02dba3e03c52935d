// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// Writes the evidence that only Kafka has into files that the checker can read, so that a run can
/// be checked again after the embedded Kafka has ended.
package struct KeptEvidence {
    private let plan: FleetPlan
    private let bootstrap: String

    private static let topics = ["registrations", "suppressions", "dead-letters"]

    package init(of fleet: ProcessFleet) {
        plan = fleet.plan
        bootstrap = fleet.bootstrap
    }

    /// Writes the files into the plan's folder.
    /// - Returns: the command that checks the run again.
    package func write() throws -> String {
        for topic in Self.topics { try write(topic) }
        try writeLowWatermarks()
        let files = [
            ("events", "events"), ("answers", "answers"), ("kills-log", "kills"),
            ("registrations", "registrations"), ("suppressions", "suppressions"),
            ("dead-letters", "dead-letters"), ("low-watermarks", "low-watermarks"),
        ]
        let options = files.map { "--\($0) \(Self.quoted(path($1)))" }
        return
            ([Self.quoted(plan.programs.lab), "verify"] + options + [
                "--registration-grace \(plan.configuration.registrationGrace / .seconds(1))"
            ])
            .joined(separator: " ")
    }

    private func path(_ name: String) -> String { "\(plan.directory)/\(name).ndjson" }

    private struct Line: Encodable {
        /// The record's time, in milliseconds since 1970.
        var t: Int64
        var key: String
        var value: String?
    }

    private func write(_ topic: String) throws {
        let lines = try TopicLog(topic: plan.topics.name(of: topic), bootstrap: bootstrap)
            .readToEndBlocking()
            .map { Line(t: $0.timestamp, key: $0.key ?? "", value: $0.value) }
        try write(lines, to: topic)
    }

    private struct LowWatermark: Encodable {
        var topic: String
        var partition: Int
        var low: Int64
    }

    private func writeLowWatermarks() throws {
        let topic = plan.topics.name(of: "events")
        let lows = try TopicPositions(bootstrap: bootstrap, group: plan.topics.prefix)
            .beginnings(of: topic)
        let lines = lows.enumerated().map {
            LowWatermark(topic: topic, partition: $0.offset, low: $0.element)
        }
        try write(lines, to: "low-watermarks")
    }

    private func write(_ lines: [some Encodable], to name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = Data()
        for line in lines { text += try encoder.encode(line) + Data("\n".utf8) }
        guard FileManager.default.createFile(atPath: path(name), contents: text) else {
            throw FleetError(description: "\(path(name)) cannot be written")
        }
    }

    /// The path quoted for a shell, if necessary.
    static func quoted(_ path: String) -> String {
        let isPlain = path.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber) || "/._-".contains($0)
        }
        return isPlain ? path : "'" + path.replacing("'", with: #"'\''"#) + "'"
    }
}
