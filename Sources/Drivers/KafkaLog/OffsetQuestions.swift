// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// Requests for offsets of many partitions, some of which may be unavailable.
///
/// librdkafka answers such a request as a whole: one partition without a leader, or one unreachable
/// leader, makes it time out for all. After that, or if it is to be expected, the partitions are
/// requested leader by leader.
struct OffsetQuestions {
    let topics: [Topic]
    let client: Client
    let timeout: Duration
    private let isAskedApart: Bool
    /// The partitions whose offsets could not be obtained, with the cause. Later requests leave
    /// them out.
    private(set) var faults: [TopicPartition: RdkafkaError] = [:]

    /// - Parameter isAskedApart: whether to request leader by leader from the start, because some
    ///   partitions were unavailable before.
    init(topics: [Topic], client: Client, isAskedApart: Bool, timeout: Duration) {
        self.topics = topics
        self.isAskedApart = isAskedApart
        self.client = client
        self.timeout = timeout
    }

    /// The offsets of the partitions. Those missing in the result are in `faults`. Throws if no
    /// broker answers at all.
    /// - Parameter time: a time, or a logical offset, as for `Client.offsetsForTimes`.
    mutating func offsets(
        of wanted: TopicPartitionList, at time: Int64
    ) throws(RdkafkaError) -> [TopicPartition: Int64] {
        let known = wanted.filter { faults[TopicPartition($0)] == nil }
        guard !known.isEmpty else { return [:] }
        if !isAskedApart, faults.isEmpty, let all = try? ask(known, at: time) { return all }
        var result: [TopicPartition: Int64] = [:]
        for (_, group) in try byLeader(known) {
            do throws(RdkafkaError) {
                result.merge(try ask(group, at: time)) { _, new in new }
            } catch {
                for index in 0..<group.count { faults[TopicPartition(group[index])] = error }
            }
        }
        return result
    }

    private func ask(
        _ list: TopicPartitionList, at time: Int64
    ) throws(RdkafkaError) -> [TopicPartition: Int64] {
        let question = list.copy()
        for index in 0..<question.count { question.setOffset(time, at: index) }
        let answer = try client.offsetsForTimes(question, timeout: timeout)
        var result: [TopicPartition: Int64] = [:]
        for index in 0..<answer.count {
            let element = answer[index]
            guard element.error == .none else { throw RdkafkaError(element.error) }
            if element.offset != Offset.unset { result[TopicPartition(element)] = element.offset }
        }
        return result
    }

    private mutating func byLeader(
        _ list: TopicPartitionList
    ) throws(RdkafkaError) -> [Int32: TopicPartitionList] {
        var groups: [Int32: TopicPartitionList] = [:]
        for topic in topics {
            let ours = list.filter { $0.topic == topic.name }
            guard !ours.isEmpty else { continue }
            let metadata = try client.metadata(of: topic, timeout: timeout)
            for index in 0..<ours.count {
                let element = ours[index]
                let partition = Int(element.partition)
                let leader =
                    metadata.leaders.indices.contains(partition)
                    ? metadata.leaders[partition] : TopicMetadata.noLeader
                guard metadata.error == .none, leader != TopicMetadata.noLeader else {
                    let code = metadata.error == .none ? .leaderNotAvailable : metadata.error
                    faults[TopicPartition(element)] = RdkafkaError(code)
                    continue
                }
                let group = groups[leader] ?? TopicPartitionList()
                group.append(topic: element.topic, partition: element.partition)
                groups[leader] = group
            }
        }
        return groups
    }
}
