// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Rdkafka

/// A broker that does not yet know all of some new topics, and the first that it does not know.
package struct BehindBroker: Hashable, Sendable, CustomStringConvertible {
    /// What one broker's answer says of a topic.
    package enum Sight: Hashable, Sendable {
        /// Each partition has a leader.
        case whole
        case leaderless(led: Int32, of: Int32)
        case missing
        /// The error of the answer, or that there was none.
        case failed(String)

        package init(_ topic: TopicMetadata) {
            switch topic.error {
            case .unknownTopic, .unknownTopicOrPartition: self = .missing
            case .none:
                let (count, led) = (topic.partitionCount, topic.ledCount)
                // A topic without partitions is being created.
                self =
                    count == 0 ? .missing : led < count ? .leaderless(led: led, of: count) : .whole
            default: self = .failed("\(RdkafkaError(topic.error))")
            }
        }
    }

    /// `host:port`, as the brokers advertise it.
    package let broker: String
    package let topic: String
    package let sight: Sight

    /// - Returns: nil if the broker knows every topic. Topics after the first unknown one are not
    ///   asked for, since each question to a broker that is away takes its whole timeout.
    package init?(_ broker: String, topics: [String], seeing: (String) -> Sight) {
        for topic in topics {
            let sight = seeing(topic)
            guard sight != .whole else { continue }
            (self.broker, self.topic, self.sight) = (broker, topic, sight)
            return
        }
        return nil
    }

    package var description: String {
        switch sight {
        case .whole: "\(broker) knows '\(topic)'"
        case .leaderless(let led, let count):
            "\(broker) knows leaders for \(led) of the \(count) partitions of '\(topic)'"
        case .missing: "\(broker) does not know '\(topic)' yet"
        case .failed(let text): "\(broker), asked for '\(topic)': \(text)"
        }
    }
}
