// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import PushModel

/// Writes events at a fixed rate, whether or not the worker keeps up, and waits for nothing.
struct FloodCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "flood",
        abstract: "Writes events at a fixed rate, subject after subject, and does not look back.")

    @Option(help: "host:port, several joined by commas.")
    var bootstrap: String

    @Option(help: "The Kafka topic of the events.")
    var topic = "lamplighter.events"

    @Option(help: "What the subjects begin with: door, phone or lamp; or a whole subject.")
    var subject: String

    @Option(help: "How many subjects take turns; 1 for the subject as it is.")
    var subjects = 1

    @Option(help: "Events a second.")
    var rate: Double

    @Option(help: "For how long.")
    var seconds: Double

    func run() throws {
        var feed = try KafkaFeed(
            bootstrap: bootstrap, topic: topic,
            properties: ["compression.codec": "lz4", "linger.ms": "5"])
        let order = Town.shuffled(subjects)
        let start = ContinuousClock.now
        var written = 0
        while true {
            let share = (ContinuousClock.now - start) / .seconds(1)
            guard share < seconds else { break }
            // From the schedule, so that a pause is made up for.
            while written < Int(share * rate) + 1 {
                let number = order[written % subjects]
                try feed.write(
                    key: Array((subjects == 1 ? subject : "\(subject)-\(number)").utf8), value: nil)
                written += 1
            }
            try feed.serveReports()
            usleep(1000)
        }
        try feed.flush()
        try Report.print(["events": written])
    }
}
