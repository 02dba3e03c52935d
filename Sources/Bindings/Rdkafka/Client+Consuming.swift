// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Glibc

extension Client {
    /// Routes the client's own errors and reports to the consumer's queue, so that `pollMessage`
    /// serves everything.
    package func pollEverythingAsConsumer() throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_poll_set_consumer(pointer))
    }

    /// The next message, if one is there; serves callbacks on the way, whose reports are in
    /// `takeNews`. Never waits.
    package func pollMessage() -> Message? {
        guard let message = rd_kafka_consumer_poll(pointer, 0) else { return nil }
        return Message(pointer: message)
    }

    package func subscribe(_ topics: [String]) throws(RdkafkaError) {
        let list = TopicPartitionList(capacity: topics.count)
        for topic in topics { list.append(topic: topic, partition: RD_KAFKA_PARTITION_UA) }
        try RdkafkaError.check(rd_kafka_subscribe(pointer, list.pointer))
    }

    /// Gives up all topics. A static member leaves its group once it has answered the revocation of what
    /// it has, unless it waits to join.
    package func unsubscribe() throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_unsubscribe(pointer))
    }

    // MARK: Assignments

    /// Whether the group wants `incrementalAssign` and `incrementalUnassign`.
    package var isCooperative: Bool {
        guard let name = rd_kafka_rebalance_protocol(pointer) else { return false }
        return String(cString: name) == "COOPERATIVE"
    }

    /// Whether the group's coordinator has given this consumer an identity. Asks the library's main
    /// thread.
    package var isGroupMember: Bool {
        guard let identity = rd_kafka_memberid(pointer) else { return false }
        defer { rd_kafka_mem_free(pointer, identity) }
        return identity[0] != 0
    }

    /// Whether the current assignment was lost; an answer to the rebalance resets it.
    package var isAssignmentLost: Bool { rd_kafka_assignment_lost(pointer) != 0 }

    package func assign(_ list: TopicPartitionList) throws(RdkafkaError) {
        awaitStoppedFetchers()
        try RdkafkaError.check(rd_kafka_assign(pointer, list.pointer))
    }

    package func unassignAll() throws(RdkafkaError) {
        awaitStoppedFetchers()
        try RdkafkaError.check(rd_kafka_assign(pointer, nil))
    }

    package func incrementalAssign(_ list: TopicPartitionList) throws(RdkafkaError) {
        awaitStoppedFetchers()
        try RdkafkaError.check(adopting: rd_kafka_incremental_assign(pointer, list.pointer))
    }

    package func incrementalUnassign(_ list: TopicPartitionList) throws(RdkafkaError) {
        awaitStoppedFetchers()
        try RdkafkaError.check(adopting: rd_kafka_incremental_unassign(pointer, list.pointer))
    }

    /// Returns when the fetchers of partitions that the last change took away have stopped. A
    /// change that takes one of them away again before that would stop it twice, for which
    /// librdkafka ends the process (`rd_kafka_assignment_partition_stopped`, 2.0.2 and later).
    private func awaitStoppedFetchers() {
        // Its main thread answers in order: the first time after it has stopped them, the second
        // time after it has taken note of that.
        for _ in 0..<2 {
            var list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?
            if rd_kafka_assignment(pointer, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list {
                rd_kafka_topic_partition_list_destroy(list)
            }
        }
    }

    /// Partitions must not be paused. The flag outlives the assignment.
    package func pause(_ list: TopicPartitionList) throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_pause_partitions(pointer, list.pointer))
    }

    /// Only for paused partitions: one that is not paused would be read again from an old offset.
    package func resume(_ list: TopicPartitionList) throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_resume_partitions(pointer, list.pointer))
    }

    // MARK: Closing

    /// Commits what is stored and closes the consumer. Returns false when that was not done in time;
    /// the client can be let go in either case. Its queues must be gone.
    ///
    /// A dynamic member leaves its group with that; for a static one the group waits until its session
    /// is over (KIP-345), unless it gives up its topics before.
    ///
    /// - Parameter leaving: whether a static member is to leave, so that the others take its partitions
    ///   over at once; false is returned, too, if the request was not sent in time.
    /// - Returns: whether it is closed; false, too, where no thread can be had for that.
    package func closeConsumer(timeout: Duration, leaving: Bool = false) -> Bool {
        let deadline = ContinuousClock.now + timeout
        // Where librdkafka's group ends at that moment, it destroys a question without an answer, and
        // whoever has asked waits for ever.
        return BoundedCall.run(within: timeout + .milliseconds(100)) { [self] in
            var isAnswered = false
            var hasLeft = true
            if leaving {
                // Also the answer to the revocation that giving up the topics begins.
                isAnswered = (try? unsubscribe()) != nil && (try? unassignAll()) != nil
                hasLeft = isAnswered && isForgotten(by: deadline - timeout / 2)
            }
            return close(by: deadline, isAnswered: isAnswered) && hasLeft
        } ?? false
    }

    /// Waits until a leaving member's identity is forgotten, which the library does as it sends the
    /// request. It sends none while it waits to join.
    private func isForgotten(by deadline: ContinuousClock.Instant) -> Bool {
        while isGroupMember {
            guard ContinuousClock.now < deadline else { return false }
            usleep(2000)
        }
        return true
    }

    /// - Parameter isAnswered: whether nothing is assigned any more, and no topic subscribed to. A
    ///   rebalance that is still told of is over then, and the library waits for no answer.
    private func close(by deadline: ContinuousClock.Instant, isAnswered: Bool) -> Bool {
        let queue = EventQueue(for: self)
        if !isAnswered { awaitStoppedFetchers() }
        if let error = rd_kafka_consumer_close_queue(pointer, queue.pointer) {
            // The consumer was closed before, or has failed for good: there is nothing to wait for.
            rd_kafka_error_destroy(error)
            return rd_kafka_consumer_closed(pointer) != 0
        }
        while rd_kafka_consumer_closed(pointer) == 0 {
            let left = deadline - ContinuousClock.now
            guard left > .zero else { return false }
            // Short, because nothing wakes the queue when the close is done.
            guard let event = queue.poll(timeout: min(left, .milliseconds(20))) else { continue }
            defer { rd_kafka_event_destroy(event) }
            if !isAnswered, rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE {
                answerRebalanceWhileClosing(event)
            }
        }
        return true
    }

    private func answerRebalanceWhileClosing(_ event: OpaquePointer) {
        let isRevocation =
            rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS
        awaitStoppedFetchers()
        if isCooperative, isRevocation {
            let list = rd_kafka_event_topic_partition_list(event)
            if let error = rd_kafka_incremental_unassign(pointer, list) {
                rd_kafka_error_destroy(error)
                rd_kafka_assign(pointer, nil)
            }
        } else {
            rd_kafka_assign(pointer, nil)
        }
    }
}
