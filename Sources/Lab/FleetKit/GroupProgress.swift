// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Synchronization

/// How far a group has committed a topic, asked for by a thread of its own: an answer may take as
/// long as the group's coordinator wants.
final class GroupProgress: Sendable {
    struct Progress {
        /// The sum over the partitions: of a topic that began empty, so many events.
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

    /// Nil before the first answer.
    var latest: Progress? { progress.withLock { $0 } }

    /// Asks from now on, for as long as anyone holds this.
    func start() {
        // Without the thread there is no lag to show, and nothing else is missing.
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
