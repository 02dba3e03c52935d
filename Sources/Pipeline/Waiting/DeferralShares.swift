// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What this worker has written to each partition of `deferred` and Kafka has not acknowledged. Each
/// partition has an equal share of the bounds, so that one that takes nothing leaves the others
/// theirs.
struct DeferralShares {
    private var shares = [Share()]
    private var looksAt = MonotonicTime(nanoseconds: .min)

    private struct Share {
        var records = 0
        var bytes = 0
        var announcements = 0
        /// The ticket that was issued last, as long as it is open; else 0.
        var latest: UInt64 = 0
        /// The open ticket by which it is told how long Kafka takes; else 0.
        var watched: UInt64 = 0
        var watchedSince = MonotonicTime(nanoseconds: .min)
    }

    /// How long Kafka may take to acknowledge a record before its partition counts as absent. An
    /// election of a leader takes less, and so does a full queue of a healthy Kafka.
    private static let patience = Duration.seconds(5)
    private static let lookInterval = Duration.milliseconds(250)

    // MARK: Partitions

    /// How many partitions the topic has.
    var count: Int { shares.count }

    /// The topic has so many partitions, as far as is known: 1 until Kafka has said. Their number
    /// never shrinks.
    mutating func adopt(partitions: Int) {
        guard partitions > shares.count else { return }
        shares += Array(repeating: Share(), count: partitions - shares.count)
    }

    /// The partition of a record. One that is not known yet counts as another.
    func partition(of record: OutgoingRecord) -> Int {
        record.partition.map { Int($0) % shares.count } ?? partition(ofKey: record.key)
    }

    func partition(ofKey key: [UInt8]) -> Int {
        KeyPartition.of(key, partitions: shares.count)
    }

    // MARK: Records

    mutating func opened(_ ticket: UInt64, bytes size: Int, announces: Bool, in partition: Int) {
        shares[partition].records += 1
        shares[partition].bytes += size
        if announces { shares[partition].announcements += 1 }
        shares[partition].latest = ticket
    }

    mutating func closed(_ ticket: UInt64, bytes size: Int, announces: Bool, in partition: Int) {
        shares[partition].records -= 1
        shares[partition].bytes -= size
        if announces { shares[partition].announcements -= 1 }
        if shares[partition].latest == ticket { shares[partition].latest = 0 }
        if shares[partition].watched == ticket { shares[partition].watched = 0 }
    }

    /// Looks for partitions of which Kafka acknowledges nothing; called once a turn.
    mutating func look(now: MonotonicTime) {
        guard looksAt <= now else { return }
        looksAt = now + Self.lookInterval
        for index in shares.indices where shares[index].watched == 0 && shares[index].latest != 0 {
            shares[index].watched = shares[index].latest
            shares[index].watchedSince = now
        }
    }

    // MARK: Room

    /// Whether some partition has room for one more record.
    /// - Parameter reserved: records of whatever partition that must find room later.
    func hasRoom(beside reserved: Int, _ sizes: PipelineSettings.Sizes) -> Bool {
        // In a healthy Kafka the first one has.
        shares.indices.contains { hasRoom(in: $0, beside: reserved, sizes) }
    }

    /// Whether this partition has room for one more record.
    func hasRoom(in partition: Int, beside reserved: Int, _ sizes: PipelineSettings.Sizes) -> Bool {
        shares[partition].records * shares.count + reserved < sizes.unacknowledgedMax
            && shares[partition].bytes * shares.count < sizes.deferralBytesMax
    }

    /// Whether Kafka has not acknowledged a record of this partition for some seconds.
    func isUnanswered(_ partition: Int, now: MonotonicTime) -> Bool {
        shares[partition].watched != 0 && now - shares[partition].watchedSince >= Self.patience
    }

    /// How many records of this partition announce a push.
    func announcements(in partition: Int) -> Int { shares[partition].announcements }

    /// - Parameter open: how many records are unacknowledged.
    func checkInvariants(open: Int) {
        precondition(
            shares.reduce(0) { $0 + $1.records } == open,
            "the shares' records add up to the open deferrals")
    }
}
