// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Keeps the records coming where they are taken as fast as they come.
///
/// A librdkafka that does not know `fetch.queue.backoff.ms` leaves a broker alone for a second once
/// its queue was full, unless there is something else to do for that broker; being asked for an end
/// is. So the queue may be small, and is never empty for long. The answer is of no interest and not
/// waited for.
struct FetchPrompter {
    private var nextAt = MonotonicTime(nanoseconds: .min)

    /// How long a full queue keeps from fetching: 100,000 events, or 32 MiB of registrations, last
    /// longer or about as long.
    static let backoff = Duration.milliseconds(50)
    /// Before 2.2 it is a second.
    static let isInLibrary = RdkafkaVersion.number >= 0x0202_0000

    /// - Parameter partitions: those that are read, with `Offset.end`.
    mutating func prompt(
        _ client: Client, now: MonotonicTime, _ partitions: () -> TopicPartitionList
    ) {
        guard !Self.isInLibrary, now >= nextAt else { return }
        nextAt = now + Self.backoff
        client.askOffsets(partitions())
    }
}
