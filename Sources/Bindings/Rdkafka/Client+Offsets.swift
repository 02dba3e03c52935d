// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

extension Client {
    /// The group's committed offsets of these partitions, `Offset.unset` where there is none, and
    /// their metadata.
    package func committed(
        _ list: TopicPartitionList, timeout: Duration
    ) throws(RdkafkaError) -> TopicPartitionList {
        let answer = list.copy()
        try RdkafkaError.check(
            rd_kafka_committed(pointer, answer.pointer, timeout.milliseconds))
        precondition(
            answer.count == list.count, "the library's answer has an element for each of the list")
        answer.takeMetadata()
        return answer
    }

    /// For each partition the first offset at or after the time in its `offset` (milliseconds since
    /// 1970, or `Offset.beginning` or `.end` for the watermarks); `Offset.end` when there is none.
    ///
    /// Also the way to ask for watermarks: `rd_kafka_query_watermark_offsets` of librdkafka 2.0.2
    /// has no timeout once the request is sent.
    package func offsetsForTimes(
        _ list: TopicPartitionList, timeout: Duration
    ) throws(RdkafkaError) -> TopicPartitionList {
        let answer = list.copy()
        try RdkafkaError.check(
            rd_kafka_offsets_for_times(pointer, answer.pointer, timeout.milliseconds))
        precondition(
            answer.count == list.count, "the library's answer has an element for each of the list")
        return answer
    }

    /// Asks the question of `offsetsForTimes` for the sake of asking, and waits for nothing. The
    /// answer's queue is gone when it comes, so the library ends it with `__DESTROY` and touches
    /// nothing of ours.
    package func askOffsets(_ list: TopicPartitionList) {
        let question = list.copy()
        _ = rd_kafka_offsets_for_times(pointer, question.pointer, 0)
    }

    /// Hands offsets to the automatic commit. Each element's error says whether it was taken;
    /// partitions that are not assigned are refused.
    package func store(_ list: TopicPartitionList) {
        // The return value only repeats what the elements say.
        _ = rd_kafka_offsets_store(pointer, list.pointer)
    }

    /// Commits now and waits for the broker's answer: the list with each partition's error, since
    /// one that is refused does not keep the others from being committed.
    @discardableResult
    package func commit(
        _ list: TopicPartitionList, timeout: Duration
    ) throws(RdkafkaError) -> TopicPartitionList {
        let queue = try beginCommit(list)
        guard let event = queue.poll(timeout: timeout) else { throw RdkafkaError(.timedOut) }
        defer { rd_kafka_event_destroy(event) }
        return try EventQueue.partitions(ofCommit: event)
    }

    /// Begins to commit; the answer comes to the queue.
    package func beginCommit(_ list: TopicPartitionList) throws(RdkafkaError) -> EventQueue {
        let queue = EventQueue(for: self)
        try RdkafkaError.check(
            rd_kafka_commit_queue(pointer, list.pointer, queue.pointer, nil, nil))
        return queue
    }

    /// The watermarks that the last fetch brought along, without asking anyone; nil before it.
    package func cachedWatermarks(topic: String, partition: Int32) -> Watermarks? {
        var low: Int64 = 0
        var high: Int64 = 0
        let code = rd_kafka_get_watermark_offsets(pointer, topic, partition, &low, &high)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, high >= 0 else { return nil }
        return Watermarks(low: max(0, low), high: high)
    }
}

extension EventQueue {
    /// The broker's answer to the commit whose queue this is, as `Client.commit` returns it; nil
    /// before it is there. Never waits.
    package func commitAnswer() -> Result<TopicPartitionList, RdkafkaError>? {
        guard let event = poll() else { return nil }
        defer { rd_kafka_event_destroy(event) }
        do throws(RdkafkaError) {
            return .success(try Self.partitions(ofCommit: event))
        } catch {
            return .failure(error)
        }
    }

    fileprivate static func partitions(
        ofCommit event: OpaquePointer
    ) throws(RdkafkaError) -> TopicPartitionList {
        let error = rd_kafka_event_error(event)
        guard let native = rd_kafka_event_topic_partition_list(event) else {
            try RdkafkaError.check(error)
            throw RdkafkaError(.failed, message: "a commit was answered without its partitions")
        }
        let answer = TopicPartitionList(copying: native)
        // Where no partition is to blame it is the whole request that failed.
        if (0..<answer.count).allSatisfy({ answer[$0].error == .none }) {
            try RdkafkaError.check(error)
        }
        return answer
    }
}

package struct Watermarks: Hashable, Sendable {
    /// The oldest offset still in the log.
    package let low: Int64
    /// One after the newest offset that can be read.
    package let high: Int64

    package init(low: Int64, high: Int64) {
        self.low = low
        self.high = high
    }
}
