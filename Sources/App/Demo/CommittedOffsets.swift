// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import Rdkafka
internal import Synchronization

/// How far a group has committed a topic, asked for by a thread of its own: an answer may take as
/// long as the group's coordinator wants.
final class CommittedOffsets: Sendable {
    struct Progress {
        /// The sum over the partitions: of a topic that began empty, so many events.
        var events: Int
        var partitions: Int
    }

    private let client: Client
    private let topic: Topic
    private let progress = Mutex<Progress?>(nil)

    private static let interval = 0.2
    private static let answerMax = Duration.seconds(5)

    init(bootstrap: String, group: String, topic: String) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", bootstrap)
        // Only asked for what it has committed: nobody joins.
        try configuration.set("group.id", group)
        try configuration.set("enable.auto.commit", "false")
        client = try Client(.consumer, configuration: configuration) { _, _, _ in
            // What matters comes back as an error of a call, and is asked again.
        }
        self.topic = try Topic(topic, of: client)
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
        guard let metadata = try? client.metadata(of: topic, timeout: Self.answerMax),
            metadata.partitionCount > 0
        else { return }
        let list = TopicPartitionList(capacity: Int(metadata.partitionCount))
        for partition in 0..<metadata.partitionCount {
            list.append(topic: topic.name, partition: partition)
        }
        guard let answer = try? client.committed(list, timeout: Self.answerMax) else { return }
        // Where nothing was committed there is no position.
        let events = (0..<answer.count).reduce(0) { $0 + Int(max(0, answer[$1].offset)) }
        progress.withLock {
            $0 = Progress(events: events, partitions: Int(metadata.partitionCount))
        }
    }
}
