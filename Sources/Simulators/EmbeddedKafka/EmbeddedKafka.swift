// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Rdkafka

/// A Kafka for demos, tests and benchmarks: librdkafka's mock cluster, which speaks the real
/// protocol over TCP on 127.0.0.1 and keeps everything in memory.
package final class EmbeddedKafka: Sendable {
    private let cluster: MockCluster

    /// Its limitations, for `--help`.
    package static let limits = """
        The embedded Kafka is librdkafka's mock cluster. It listens on 127.0.0.1 only, on ports that
        the kernel chooses, and forgets everything when it ends. It does not have:
          - administration: topics are made when it starts, or get 4 partitions when first asked for
          - compaction, and retention by time: each partition keeps its newest 5 MiB (as compressed
            by the producer) or 100,000 batches, and drops the oldest without a word
          - offsets by time: a group that starts "an hour ago" starts at the beginning
          - static membership, TLS, SASL, ACLs, elections when a broker goes down
        A group's first join takes 3 s, every later one session.timeout.ms less 1 s: use 6000.
        Offsets cannot be committed while members are joining, so a rebalance repeats records here
        that a real broker would not repeat. Set fetch.wait.max.ms to 50 or less on consumers: an
        empty fetch is held for all of it.
        """

    /// The commands on standard input, for `--help`.
    package static let commands = """
        down N              broker N goes down            up N    and comes back
        rtt N MS            its answers take MS (N = -1: all brokers)
        err API CODE COUNT  the next COUNT requests with this API key fail with this code
        leader T P B        broker B leads partition P of topic T (B = -1: nobody does)
        topic T P           makes topic T with P partitions
        topicerr T CODE     whoever asks about topic T is told CODE (3: no such topic, 0: fine)
        quit                ends
        """

    /// - Parameter topics: the topics, with their numbers of partitions.
    package init(topics: [String: Int], brokers: Int = 1) throws(RdkafkaError) {
        cluster = try MockCluster(brokers: brokers) { _, _, _ in
            // The mock cluster's client only logs that it has no broker to connect to.
        }
        for (name, partitions) in topics {
            try cluster.createTopic(name, partitions: Int32(partitions))
        }
    }

    /// The bootstrap list: `127.0.0.1:port` for each broker, separated by commas.
    package var bootstrap: String { cluster.bootstrap }

    package func perform(_ command: EmbeddedKafkaCommand) throws(RdkafkaError) {
        switch command {
        case .down(let broker):
            try cluster.takeBrokerDown(broker)
        case .up(let broker):
            try cluster.bringBrokerUp(broker)
        case .roundTrip(let broker, let milliseconds):
            try cluster.setRoundTrip(ofBroker: broker, milliseconds: milliseconds)
        case .fail(let apiKey, let code, let count):
            let error = ErrorCode(rawValue: code)
            cluster.failRequests(apiKey: apiKey, with: Array(repeating: error, count: count))
        case .leader(let topic, let partition, let broker):
            try cluster.setLeader(ofTopic: topic, partition: partition, toBroker: broker)
        case .topic(let name, let partitions):
            try cluster.createTopic(name, partitions: partitions)
        case .topicError(let name, let code):
            cluster.setError(ErrorCode(rawValue: code), ofTopic: name)
        case .quit:
            break
        }
    }
}
