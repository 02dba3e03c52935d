// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Rdkafka
internal import Registering
internal import Synchronization

/// Knows how many partitions the registrations topic has and where the owner of each is reached. A
/// thread of its own asks Kafka every few seconds, and at once where a request did not find an owner.
final class OwnerDirectory: Sendable {
    struct Owners: Sendable {
        /// The URL of each partition's owner; nil where there is none, or one that cannot be reached
        /// by others.
        var urls: [String?] = []
        /// Whether anybody says that they own it: in the midst of a change of the replicas' token those of
        /// the other token do, who cannot be reached by this one and yet are no reason to be unready.
        var isAnnounced: [Bool] = []
        /// Whether a look at Kafka has succeeded.
        var isKnown: Bool { !urls.isEmpty }
    }

    private struct State {
        var owners = Owners()
        var isClosed = false
        var isWanted = false
    }

    private let state = Mutex(State())
    /// What announced addresses are signed with; nil for a replica that has no others.
    private let seal: PeerSeal?
    private let wakeUps = DispatchSemaphore(value: 0)
    private static let interval = DispatchTimeInterval.seconds(5)
    /// Between two looks, so that a stream of requests without an owner does not ask in a stream.
    private static let pause: UInt32 = 200_000
    private static let timeout = Duration.seconds(5)
    private static let tellInterval = Duration.seconds(60)

    init(seal: PeerSeal? = nil) { self.seal = seal }

    var owners: Owners { state.withLock(\.owners) }

    /// The partition of a record's key; nil until the number of partitions is known.
    func partition(of key: [UInt8]) -> Int32? {
        let count = Int32(owners.urls.count)
        return count > 0 ? KeyPartitioner.murmur2(key, of: count) : nil
    }

    var isKnown: Bool { owners.isKnown }

    /// Where the owner of a partition is reached; nil if there is none.
    func url(of partition: Int32) -> String? {
        let urls = owners.urls
        return urls.indices.contains(Int(partition)) ? urls[Int(partition)] : nil
    }

    /// Asks for another look soon.
    func refresh() {
        let isNew = state.withLock { state in
            defer { state.isWanted = true }
            return !state.isWanted
        }
        if isNew { wakeUps.signal() }
    }

    func start(clients: KafkaClientSettings, topic: String, logger: Logger) throws {
        let box = UncheckedBox(
            try PartitionOwners(settings: clients, topic: topic, logger: logger))
        try NamedThread.detach(name: "ll-owners") { [self] in
            var toldAt: ContinuousClock.Instant?
            while !state.withLock(\.isClosed) {
                if let problem = look(box.value) {
                    if toldAt.map({ ContinuousClock.now - $0 > Self.tellInterval }) ?? true {
                        logger.warning(
                            "Kafka does not say who owns the registrations",
                            metadata: ["cause": "\(problem)", "topic": "\(topic)"])
                        toldAt = .now
                    }
                } else {
                    toldAt = nil
                }
                usleep(Self.pause)
                state.withLock { $0.isWanted = false }
                _ = wakeUps.wait(timeout: .now() + Self.interval)
            }
        }
    }

    /// - Returns: why Kafka has not answered; nil if it has.
    private func look(_ source: PartitionOwners) -> String? {
        do {
            let count = try source.partitionCount(timeout: Self.timeout)
            guard count > 0 else { return "the topic has no partitions" }
            let announced = try source.announcements(of: count, timeout: Self.timeout)
            // Whoever may commit offsets for the group could send requests wherever they like.
            let urls = announced.map { $0.flatMap { seal?.url(in: $0) } }
            state.withLock {
                $0.owners = Owners(urls: urls, isAnnounced: announced.map { $0 != nil })
            }
            return zip(announced, urls).contains { $0 != nil && $1 == nil } && seal != nil
                ? "a partition's owner announces an address that no registrar has signed" : nil
        } catch {
            return source.connectionFailure.map { "\($0)" } ?? "\(error)"
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeUps.signal()
    }
}
