// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Keeps librdkafka fetching for a reader that takes records as fast as they come.
///
/// A librdkafka without `fetch.queue.backoff.ms` stops fetching from a broker for a second once its
/// queue was full, unless it has another request for that broker. A request for end offsets is one.
/// Its answer is ignored and not waited for. So the queue can be small without running empty for
/// long.
struct FetchPrompter {
    /// Whether librdkafka has to be asked at all.
    private let isNeeded: Bool
    private var nextAt = MonotonicTime(nanoseconds: .min)
    /// Whether something has come since it was last looked at who is behind.
    private var hasRead = false

    /// How long fetching stops after the queue was full. A full queue (100,000 events, or 32 MiB of
    /// registrations) takes about as long or longer to read.
    static let backoff = Duration.milliseconds(50)
    /// Whether librdkafka has the setting (since 2.2); before that it waits for a second.
    static let isInLibrary = RdkafkaVersion.number >= 0x0202_0000

    init(isNeeded: Bool = !isInLibrary) { self.isNeeded = isNeeded }

    /// When a turn is to be taken, even if nothing has come: a queue that is drained before the next
    /// question would stay empty. Nil if there is no need.
    var nextLook: MonotonicTime? { hasRead && isNeeded ? nextAt : nil }

    /// A turn has read so many messages. Asks for the ends of the partitions that are behind, if
    /// librdkafka needs that and it is time.
    ///
    /// - Parameter behind: the partitions of which the brokers have more, with `Offset.end`. It is called
    ///   once in `backoff` at most, and not again before something has come: what stands still for
    ///   another reason, such as a partition without a leader, is asked about once.
    mutating func turned(
        _ client: Client, looked: Int, now: MonotonicTime, behind: () -> TopicPartitionList
    ) {
        guard looks(afterReading: looked, now: now) else { return }
        let partitions = behind()
        if !partitions.isEmpty { client.askOffsets(partitions) }
    }

    /// Whether it is time to look who is behind.
    mutating func looks(afterReading looked: Int, now: MonotonicTime) -> Bool {
        hasRead = hasRead || looked > 0
        guard hasRead, isNeeded, now >= nextAt else { return false }
        nextAt = now + Self.backoff
        hasRead = false
        return true
    }
}
