// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import Logging
package import PushModel
internal import Rdkafka

/// Reads single partitions of one topic again, one at a time, each from an offset on: for records that
/// the group's consumer has read before. It takes no part in the group and never commits. It belongs
/// to one thread, under the contract of `EventConsumer`.
package final class PartitionRereader {
    private let topic: String
    private let session: ConsumerSession
    private let waker = Waker()
    private var warnings = WarningLimiter()
    private var pendingWarnings: [KafkaWarning] = []
    private var prompter = FetchPrompter()
    private var place: Place?
    /// When the partition is assigned again after an error.
    private var assignsAt = MonotonicTime.distantFuture

    private struct Place {
        let number: Int
        let partition: Int32
        /// Of the next record.
        var offset: Int64
    }

    /// librdkafka reports some errors once, and then fetches no more.
    private static let retryInterval = Duration.seconds(5)

    package init(
        settings: KafkaClientSettings, topic: String, logger: Logger
    ) throws(KafkaError) {
        self.topic = topic
        session = try ConsumerSession(
            settings: settings, role: .table, topics: [topic], logger: logger, waker: waker)
    }

    package var wakeDescriptor: CInt { waker.descriptor }

    package func clearWakeUp() { waker.awake() }

    /// When `poll` is to be called once more after something has come; nil if there is no need.
    package var nextLook: MonotonicTime? { place == nil ? nil : prompter.nextLook }

    /// The number of the reading that is under way; nil for none.
    package var number: Int? { place?.number }

    /// Reads this partition from now on, in place of any other.
    /// - Parameter number: what the reading is known by.
    package func begin(number: Int, partition: Int32, offset: Int64, now: Now) {
        place = Place(number: number, partition: partition, offset: offset)
        assign(now: now)
    }

    /// Reads nothing any more.
    package func stop() {
        guard place != nil else { return }
        place = nil
        assignsAt = .distantFuture
        try? session.client.unassignAll()
    }

    private func assign(now: Now) {
        guard let place else { return }
        assignsAt = .distantFuture
        let list = TopicPartitionList(capacity: 1)
        list.append(topic: topic, partition: place.partition, offset: place.offset)
        do throws(RdkafkaError) {
            try session.client.assign(list)
        } catch {
            warn(error, now: now)
            assignsAt = now.monotonic + Self.retryInterval
        }
    }

    /// Lends up to `limit` records to `body`.
    /// - Returns: how many messages were examined, and the offset at which the log ends, if it was
    ///   reached.
    package func poll(
        now: Now, limit: Int, _ body: (borrowing KafkaRecord) -> Void
    ) -> (count: Int, end: Int64?) {
        if now.monotonic >= assignsAt { assign(now: now) }
        var looked = 0
        var end: Int64?
        while looked < limit {
            let next = session.client.pollMessage()
            if session.client.hasNews {
                for error in session.client.takeNews().errors { warn(error, now: now) }
            }
            guard let message = next else { break }
            looked += 1
            // An error of the client or of the topic is of no partition.
            let isOfClient = message.error != .none && message.partition < 0
            guard let place, isOfClient || message.partition == place.partition else { continue }
            guard message.error == .none else {
                if message.error == .partitionEOF {
                    end = max(message.offset, place.offset)
                } else {
                    failed(RdkafkaError(message.error, message: message.errorText), now: now)
                }
                continue
            }
            guard message.offset >= place.offset else { continue }
            self.place!.offset = message.offset + 1
            body(KafkaRecord(message, topic: 0))
        }
        prompter.turned(session.client, looked: looked, now: now.monotonic) { placeBehind() }
        return (looked, end)
    }

    /// The partition that is read, with `Offset.end`, if the brokers have more of it as of its last fetch.
    private func placeBehind() -> TopicPartitionList {
        let list = TopicPartitionList(capacity: 1)
        if let place,
            let marks = session.client.cachedWatermarks(topic: topic, partition: place.partition),
            marks.high > place.offset
        {
            list.append(topic: topic, partition: place.partition, offset: Offset.end)
        }
        return list
    }

    private func failed(_ error: RdkafkaError, now: Now) {
        warn(error, now: now)
        if error.code == .autoOffsetReset || error.code == .offsetOutOfRange {
            // The log begins later by now, or is another one.
            place?.offset = Offset.beginning
        }
        assignsAt = min(assignsAt, now.monotonic + Self.retryInterval)
    }

    private func warn(_ error: RdkafkaError, now: Now) {
        if let warning = warnings.admit(error, now: now.monotonic) {
            pendingWarnings.append(warning)
        }
    }

    package func takeWarnings() -> [KafkaWarning] {
        defer { pendingWarnings.removeAll() }
        return pendingWarnings
    }
}
