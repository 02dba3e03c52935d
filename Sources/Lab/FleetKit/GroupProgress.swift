// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Synchronization

/// Measures how far a group has committed a topic, on a thread of its own, since the group's
/// coordinator may take long to answer.
final class GroupProgress: Sendable {
    struct Progress {
        /// The sum of the committed offsets over the partitions, which is the number of events if
        /// the topic was empty at the start.
        var events: Int
        var partitions: Int
    }

    private let positions: TopicPositions
    private let topic: String
    private let progress = Mutex<Progress?>(nil)

    private static let interval = 0.2

    init(bootstrap: String, group: String, topic: String) throws {
        positions = try TopicPositions(bootstrap: bootstrap, group: group)
        self.topic = topic
    }

    /// The latest answer; nil before the first.
    var latest: Progress? { progress.withLock { $0 } }

    /// Starts asking, for as long as this object is referenced.
    func start() {
        // Without the thread only the lag is unknown.
        try? NamedThread.detach(name: "committed") { [weak self] in
            while self?.ask() != nil { Thread.sleep(forTimeInterval: Self.interval) }
        }
    }

    private func ask() {
        guard let committed = try? positions.committed(of: topic), !committed.isEmpty else {
            return
        }
        let events = committed.reduce(0) { $0 + Int($1) }
        progress.withLock { $0 = Progress(events: events, partitions: committed.count) }
    }
}
