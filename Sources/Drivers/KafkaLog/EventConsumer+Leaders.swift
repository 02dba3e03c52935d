// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import PushModel
internal import Rdkafka

/// Which partitions Kafka cannot serve. librdkafka waits in silence for a leader that does not come, so
/// that a partition without one looks like one to which nobody writes.
extension EventConsumer {
    /// Takes what Kafka has said of the leaders, and asks again if it is time: every ten seconds, or at
    /// every call while something is wrong. To be called every few seconds. Waits for nothing.
    ///
    /// A partition counts as unavailable once two answers in a row knew no leader, since an election
    /// takes a moment.
    package func watchLeaders(now: Now) {
        guard let session else { return }
        if let answers = leaders.takeAnswer() { adopt(answers, now: now) }
        let isWell = missing.isEmpty && unavailable.isEmpty && !seesLeaderless
        guard !isWell || now.monotonic >= lookForLeadersAt else { return }
        lookForLeadersAt = now.monotonic + Self.leadersInterval
        let (client, topics) = (session.client, session.topics)
        // Without a thread nothing is asked now; the next call tries again.
        try? leaders.begin { Self.askForLeaders(client, topics) }
    }

    private var seesLeaderless: Bool {
        !partitions.assigned { $0.looksWithoutLeader > 0 }.isEmpty
    }

    private static let leadersInterval = Duration.seconds(10)
    private static let leadersTimeout = Duration.seconds(2)

    /// - Returns: as many answers as there are topics, or fewer if Kafka has stopped to answer.
    private static func askForLeaders(_ client: Client, _ topics: [Topic]) -> [TopicMetadata] {
        var answers: [TopicMetadata] = []
        for topic in topics {
            // No broker answers: the next topic would wait as long.
            guard let answer = try? client.metadata(of: topic, timeout: leadersTimeout) else {
                break
            }
            answers.append(answer)
        }
        return answers
    }

    private func adopt(_ answers: [TopicMetadata], now: Now) {
        // Another member may have got the partitions of a topic that is there again.
        for (topic, answer) in answers.enumerated() where answer.error == .none {
            missing.remove(topic)
        }
        for id in partitions.assigned() {
            guard let row = partitions.row(id), answers.indices.contains(row.topic),
                let isLed = answers[row.topic].isLed(row.partition)
            else { continue }
            partitions.update(id) { row in
                // The silence of one that has a leader again is counted from here.
                if isLed, row.isLeaderless { row.activeAt = now.monotonic }
                row.looksWithoutLeader = isLed ? 0 : row.looksWithoutLeader + 1
            }
            if !isLed, row.looksWithoutLeader > 0 {
                unavailable.note(
                    row.topic, row.partition, RdkafkaError(.leaderNotAvailable),
                    now: now.monotonic)
            } else if isLed, row.isLeaderless, !row.isRefused {
                isReadAgain(row.topic, row.partition)
            }
        }
    }
}

extension TopicMetadata {
    /// Whether a partition has a leader; nil if the answer does not say.
    func isLed(_ partition: Int32) -> Bool? {
        switch error {
        case .none:
            leaders.indices.contains(Int(partition))
                ? leaders[Int(partition)] != Self.noLeader : nil
        case .leaderNotAvailable: false
        default: nil
        }
    }
}
