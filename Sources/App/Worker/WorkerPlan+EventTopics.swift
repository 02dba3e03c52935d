// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration

/// Why no topic of events is meant.
package struct UnreadTopic: Error, Hashable, Sendable {
    package let message: String

    init(_ message: String) { self.message = message }
}

extension WorkerPlan {
    /// The event topic of this name, which must be configured. Without a name, the only one that is
    /// configured, or else `lamplighter.events`.
    package func topicOfEvents(named name: String?) throws(UnreadTopic) -> String {
        let topics = eventTopics
        guard let name else {
            if topics.count == 1 { return topics[0] }
            if topics.contains(Self.standardTopic) { return Self.standardTopic }
            throw UnreadTopic(
                "several events topics are configured: name one of \(topics.joined(separator: ", "))"
            )
        }
        guard topics.contains(name) else {
            let nearest = Spelling.nearest(to: name, among: topics) ?? Self.standardTopic
            throw UnreadTopic(
                "'\(name)' is not among kafka.events, so no worker would read it; the nearest there "
                    + "is '\(nearest)'")
        }
        return name
    }

    private static let standardTopic = "lamplighter.events"
}
