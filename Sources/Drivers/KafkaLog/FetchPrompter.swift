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
    private var nextAt = MonotonicTime(nanoseconds: .min)
    /// Whether a record has come since it last asked: what stands still for another reason is not
    /// helped by asking.
    private var hasRead = false

    /// How long fetching stops after the queue was full. A full queue (100,000 events, or 32 MiB of
    /// registrations) takes about as long or longer to read.
    static let backoff = Duration.milliseconds(50)
    /// Whether librdkafka has the setting (since 2.2); before that it waits for a second.
    static let isInLibrary = RdkafkaVersion.number >= 0x0202_0000

    /// Notes how many records a turn has read.
    mutating func note(_ looked: Int) { hasRead = hasRead || looked > 0 }

    func isDue(_ now: MonotonicTime) -> Bool { !Self.isInLibrary && hasRead && now >= nextAt }

    /// Asks for the ends of the partitions, if librdkafka needs that and it is time.
    ///
    /// - Parameter partitions: those that are read, with `Offset.end`.
    mutating func prompt(
        _ client: Client, now: MonotonicTime, _ partitions: () -> TopicPartitionList
    ) {
        guard isDue(now) else { return }
        nextAt = now + Self.backoff
        hasRead = false
        client.askOffsets(partitions())
    }
}
