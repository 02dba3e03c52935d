// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

struct TopicPartition: Hashable {
    var topic: String
    var partition: Int32
}

extension TopicPartition {
    init(_ element: TopicPartitionList.Element) {
        self.init(topic: element.topic, partition: element.partition)
    }
}

extension TopicPartitionList {
    /// The offset of each partition; nil if librdkafka reports none. An error of one partition goes
    /// to `faults`; the first error of another kind is thrown.
    func positions(
        faults: inout [TopicPartition: RdkafkaError]
    ) throws(RdkafkaError) -> [TopicPartition: Int64?] {
        var result: [TopicPartition: Int64?] = [:]
        for index in 0..<count {
            let element = self[index]
            guard element.error == .none else {
                let error = RdkafkaError(element.error)
                guard error.code.concernsPartitions else { throw error }
                faults[TopicPartition(element)] = error
                continue
            }
            let offset = element.offset == Offset.unset ? nil : element.offset
            result.updateValue(offset, forKey: TopicPartition(element))
        }
        return result
    }

    /// The metadata that came with committed offsets, where there is any.
    var metadataOfPartitions: [TopicPartition: String] {
        var result: [TopicPartition: String] = [:]
        for (index, metadata) in metadata.enumerated() {
            if let metadata { result[TopicPartition(self[index])] = metadata }
        }
        return result
    }

    func append(contentsOf other: TopicPartitionList) {
        for index in 0..<other.count {
            append(topic: other[index].topic, partition: other[index].partition)
        }
    }

    func filter(_ isWanted: (Element) -> Bool) -> TopicPartitionList {
        let result = TopicPartitionList(capacity: count)
        for index in 0..<count where isWanted(self[index]) {
            result.append(
                topic: self[index].topic, partition: self[index].partition,
                offset: self[index].offset)
        }
        return result
    }
}

extension ErrorCode {
    /// Whether the error is about a topic or a partition, not about the group or the cluster.
    var concernsPartitions: Bool {
        switch self {
        case .topicAuthorizationFailed, .unknownTopicOrPartition, .unknownPartition, .unknownTopic,
            .leaderNotAvailable, .notLeader:
            true
        default:
            false
        }
    }

    /// Whether a later retry can succeed without anybody's intervention.
    var passesByItself: Bool {
        switch self {
        case .timedOut, .transport, .allBrokersDown, .waitingForCoordinator, .requestTimedOut,
            .leaderNotAvailable, .notLeader, .coordinatorLoading, .coordinatorNotAvailable,
            .notCoordinator, .rebalanceInProgress, .unknownTopicOrPartition, .unknownPartition:
            true
        default:
            false
        }
    }
}
