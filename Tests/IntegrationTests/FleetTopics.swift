// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation

/// The Kafka topics of one fleet, under names of its own: tests may share a broker.
extension FleetTopics {
    /// Those that tests write to; the raw value is the producer's number of them.
    enum Written: Int, CaseIterable {
        case events, orders, cloudEvents, registrations, suppressions
    }

    /// Each topic has so many.
    static let partitionsEach: Int32 = 4

    static func ofTest() -> FleetTopics {
        let names =
            Written.allCases.map { "\($0)" }
            + ["deferred", "dead-letters", "restrictions", "outcomes"]
        return FleetTopics(
            prefix: "test-" + UUID().uuidString.prefix(8).lowercased(),
            partitions: names.map { ($0, Int(partitionsEach)) })
    }

    subscript(topic: Written) -> String { name(of: "\(topic)") }
    var deferred: String { name(of: "deferred") }
    var deadLetters: String { name(of: "dead-letters") }
    var outcomes: String { name(of: "outcomes") }
}
