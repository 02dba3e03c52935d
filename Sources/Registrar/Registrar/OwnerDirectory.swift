// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Rdkafka
internal import RegistrarRules
internal import Synchronization

/// Knows how many partitions the registrations topic has and where the owner of each is reached. A
/// thread of its own asks Kafka every few seconds, and at once where a request did not find an owner.
final class OwnerDirectory: Sendable {
    struct Owners: Sendable {
        /// The URL of each partition's owner; nil where there is none, or one that cannot be reached
        /// by others.
        var urls: [String?] = []
        /// False where nobody has announced anything. During a change of the replicas' token the others'
        /// addresses are not believed, and that makes no replica unready.
        var isAnnounced: [Bool] = []
        /// Whether a replica says that something in its partitions was imported.
        var hasImports = false
        /// Whether a look at Kafka has succeeded.
        var isKnown: Bool { !urls.isEmpty }

        init() {}

        /// - Parameter announced: by the owner of each partition. Whoever may commit offsets for the group
        ///   could send requests wherever they like, so an address is believed that is signed.
        init(announced: [String?], _ seal: PeerSeal?) {
            urls = announced.map { $0.flatMap { seal?.url(in: $0) } }
            isAnnounced = announced.map { $0 != nil && seal != nil }
            hasImports = announced.contains { text in
                text.map { seal?.hasImports(in: $0) ?? false } ?? false
            }
        }

        /// The partitions that nobody says they own.
        func unowned(but own: Set<Int32>) -> [Int] {
            urls.indices.filter { !isAnnounced[$0] && !own.contains(Int32($0)) }
        }
    }

    private struct State {
        var owners = Owners()
        /// When Kafka last answered, and what was wrong with its answers since.
        var answeredAt: ContinuousClock.Instant?
        var cause: String?
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
    /// An election of a leader is over before, and a look that fails has taken as long as two.
    private static let silenceMax = Duration.seconds(10)
    private static let tellInterval = Duration.seconds(60)

    init(seal: PeerSeal? = nil) { self.seal = seal }

    var owners: Owners { state.withLock(\.owners) }

    /// The partition of a record's key; nil until the number of partitions is known.
    func partition(of key: [UInt8]) -> Int32? {
        let count = Int32(owners.urls.count)
        return count > 0 ? KeyPartitioner.murmur2(key, of: count) : nil
    }

    var isKnown: Bool { owners.isKnown }

    /// What keeps Kafka from saying who owns the registrations; nil if it has done so lately.
    var problem: String? {
        state.withLock { state in
            guard let answeredAt = state.answeredAt else { return state.cause ?? "no look yet" }
            return ContinuousClock.now - answeredAt > Self.silenceMax ? state.cause : nil
        }
    }

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
                        problem.tell(logger, topic: topic)
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

    private enum Problem {
        case noAnswer(String)
        /// So many partitions' owners have signed their address with another token, or not.
        case unsigned(Int)

        func tell(_ logger: Logger, topic: String) {
            switch self {
            case .noAnswer(let cause):
                logger.warning(
                    "Kafka does not say who owns the registrations",
                    metadata: ["cause": "\(cause)", "topic": "\(topic)"])
            case .unsigned(let count):
                logger.warning(
                    "a registrar announces an address that this one does not believe",
                    metadata: [
                        "cause": "it is not signed with this one's token",
                        "partitions": .stringConvertible(count),
                    ])
            }
        }
    }

    /// - Returns: what is wrong with the answer; nil if nothing is.
    private func look(_ source: PartitionOwners) -> Problem? {
        let problem = ask(source)
        state.withLock { state in
            if case .noAnswer(let cause) = problem {
                state.cause = cause
            } else {
                state.answeredAt = .now
                state.cause = nil
            }
        }
        return problem
    }

    private func ask(_ source: PartitionOwners) -> Problem? {
        do {
            let count = try source.partitionCount(timeout: Self.timeout)
            guard count > 0 else { return .noAnswer("the topic has no partitions") }
            let announced = try source.announcements(of: count, timeout: Self.timeout)
            let owners = Owners(announced: announced, seal)
            state.withLock { $0.owners = owners }
            let unsigned = zip(owners.isAnnounced, owners.urls).count { $0 && $1 == nil }
            return unsigned > 0 ? .unsigned(unsigned) : nil
        } catch {
            return .noAnswer(source.connectionFailure.map { "\($0)" } ?? "\(error)")
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wakeUps.signal()
    }
}
