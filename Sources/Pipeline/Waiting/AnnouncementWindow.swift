// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How many announcements of pushes with a minimum gap may be on their way to Kafka, and how long Kafka
/// takes for one.
///
/// An announcement is worth something for a time that begins when it is written. So no more are
/// written than Kafka takes in some seconds: each acknowledgement that comes soon allows one more, and
/// one that comes late halves their number.
struct AnnouncementWindow {
    /// The most that may be on their way. It doubles with each round of acknowledgements, up to 8,192:
    /// the slots that a large worker has for such pushes.
    private(set) var most = 1024
    /// How long the last acknowledgements took, up to a minute.
    private(set) var delay = Duration.zero
    private var acknowledgements = 0
    private var oldest = MonotonicTime.distantFuture
    /// What was written before has been judged.
    private var narrowedAt = MonotonicTime(nanoseconds: .min)

    private static let largest = 8192
    private static let soon = Duration.seconds(3)
    /// A push whose announcement takes longer than this and the time that it is worth is announced
    /// again and again: Kafka takes hardly anything then.
    private static let delayMax = Duration.seconds(60)

    /// Kafka has an announcement that was written then.
    mutating func acknowledged(writtenAt time: MonotonicTime) {
        acknowledgements += 1
        oldest = min(oldest, time)
    }

    /// Takes in what was acknowledged since the last turn.
    mutating func advance(now: MonotonicTime) {
        guard acknowledgements > 0 else { return }
        delay = min(now - oldest, Self.delayMax)
        if delay <= Self.soon {
            most = min(most + acknowledgements, Self.largest)
        } else if oldest >= narrowedAt {
            most = max(1, most / 2)
            narrowedAt = now
        }
        acknowledgements = 0
        oldest = .distantFuture
    }
}
