// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Remembers the statuses of the last seconds, so that the next one can be compared with one of
/// about ten seconds before. It is given one every `interval`, however seldom somebody asks, so that
/// no problem is found or missed because of when somebody asked last.
struct StatusHistory {
    /// Half of the age that is compared with: the nearest moment is then 7.5 to 12.5 s old.
    static let interval = Duration.seconds(5)

    /// Oldest first, and at least `spacingMin` apart.
    private var moments = [WorkerStatus.Earlier()]
    private var recordsRead: UInt64 = 0
    private var readAt = Duration.zero
    private var replayed: [WorkerStatus.SetAsideCount]?

    var count: Int { moments.count }

    private static let age = Duration.seconds(10)
    /// Moments that are closer together say nothing of a rate.
    static let spacingMin = Duration.milliseconds(500)

    /// Returns the moment to compare a status with, and remembers the status. It is the one whose
    /// age is nearest to ten seconds; the first time, the start.
    mutating func earlier(than status: WorkerStatus) -> WorkerStatus.Earlier {
        let elapsed = status.index.elapsed
        if status.index.recordsRead != recordsRead {
            (recordsRead, readAt) = (status.index.recordsRead, elapsed)
        }
        if replayed == nil, status.phase == .running { replayed = status.setAside }
        let ages = moments.map { elapsed - $0.elapsed }
        let distances = ages.map { $0 > Self.age ? $0 - Self.age : Self.age - $0 }
        let nearest = moments.indices.filter { ages[$0] >= Self.spacingMin }
            .min { distances[$0] < distances[$1] }
        // An older one will never again be nearer.
        moments.removeFirst(nearest ?? 0)
        if elapsed - moments[moments.count - 1].elapsed >= Self.spacingMin {
            moments.append(
                WorkerStatus.Earlier(
                    elapsed: elapsed, counters: status.counters, lag: status.lag,
                    setAside: status.setAside, events: status.events,
                    deadLetters: status.deadLetters, recordNotes: status.recordNotes,
                    roundTrips: status.roundTrips,
                    eventToAccepted: status.eventToAccepted))
        }
        var earlier = moments[0]
        earlier.readAt = readAt
        earlier.replayed = replayed ?? []
        return earlier
    }
}
