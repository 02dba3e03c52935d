// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The faults of one round of chaos, and the fleet that they strike. Everything follows from the
/// seed and the number of the round, so that a round can be repeated.
struct ChaosScript: Equatable, Sendable {
    /// The transport of each worker.
    var transports: [String]
    /// The workers' `delivery.holdMax`, short in every other round, so that pushes go through the
    /// deferred topic.
    var holdMax: Duration
    var faults: [ChaosFault]
    /// The steps in ascending order. They also end every fault that has begun.
    var steps: [ChaosStep]

    static let workers = 3
    private static let transportChoices = [
        ["nghttp2", "nghttp2", "curl"], ["nghttp2", "nghttp2", "nghttp2"],
        ["curl", "curl", "curl"], ["curl", "nghttp2", "curl"],
    ]
    /// The share of the traffic's duration within which faults begin; some last longer.
    private static let span = 0.1...0.75
    /// The number of seconds of traffic per fault.
    private static let faultInterval = 5.0

    /// - Parameters:
    ///   - round: counted from 0.
    ///   - duration: how long there is traffic.
    ///   - isKafkaOurs: whether this is the embedded Kafka, which can be made to fail.
    init(
        seed: UInt64, round: Int, duration: Duration, session: Duration, isKafkaOurs: Bool
    ) {
        transports = Self.transportChoices[round % Self.transportChoices.count]
        holdMax = round % 2 == 0 ? .seconds(2) : .seconds(10)
        let count = max(3, Int(duration / .seconds(1) / Self.faultInterval))
        let dealt = (round * count..<(round + 1) * count).map {
            Self.fault($0, seed: seed, isKafkaOurs: isKafkaOurs)
        }

        var random = SplitMix64(seed: seed &+ UInt64(round) &* 0x9E37_79B9)
        // Three of four rounds have kills.
        let kills = round % 4 == 3 ? 0 : Int.random(in: 1...2, using: &random)
        faults = Array(repeating: .kill, count: kills) + dealt
        steps = faults.flatMap { fault in
            let at = duration * Double.random(in: Self.span, using: &random)
            let worker = Int.random(in: 0..<Self.workers, using: &random)
            return fault.actions(worker: worker, session: session).map {
                ChaosStep(at: at + $0.after, action: $0.action)
            }
        }.sorted { $0.at < $1.at }
    }

    /// The fault of this number. All faults occur before any is repeated, in an order that depends
    /// on the seed.
    private static func fault(_ number: Int, seed: UInt64, isKafkaOurs: Bool) -> ChaosFault {
        let deck = ChaosFault.allCases.filter { $0 != .kill && (isKafkaOurs || !$0.isKafkas) }
        var dealing = SplitMix64(seed: seed &+ UInt64(number / deck.count))
        return deck.shuffled(using: &dealing)[number % deck.count]
    }

    /// How many faults move partitions to other workers.
    var takeovers: Int { faults.filter(\.movesPartitions).count }

    /// How many steps lose answers that APNs has given.
    var answerLosses: Int { steps.filter(\.action.losesAnswers).count }
}

struct ChaosStep: Equatable, Sendable {
    /// The time after the first event.
    var at: Duration
    var action: ChaosAction
}

enum ChaosAction: Hashable, Sendable {
    case kill(worker: Int)
    case terminate(worker: Int)
    case freeze(worker: Int)
    case thaw(worker: Int)
    /// A command to the embedded Kafka.
    case kafka(String)
    /// A command to the APNs simulator.
    case apns(String)
    case restartAPNS

    /// Whether answers of APNs are lost, so that accepted pushes are sent again.
    var losesAnswers: Bool { self == .restartAPNS || self == .apns("reset streams") }
}

/// A kind of fault.
enum ChaosFault: String, CaseIterable, Sendable {
    case kill, terminate, freeze, loseSession
    case refuseRequests, refuseCommits, takeBrokerDown, slowBroker
    case restartAPNS, goAwayStorm, resetStreams, serverErrors, outage, tooManyRequests
    case expiredKey, stall

    var isKafkas: Bool {
        switch self {
        case .refuseRequests, .refuseCommits, .takeBrokerDown, .slowBroker: true
        default: false
        }
    }

    /// Whether the fault makes the group reassign partitions: a worker leaves or misses its
    /// heartbeats.
    var movesPartitions: Bool {
        switch self {
        case .kill, .terminate, .loseSession, .takeBrokerDown, .refuseRequests: true
        default: false
        }
    }

    /// The actions of the fault, with their times after its beginning.
    func actions(worker: Int, session: Duration) -> [(after: Duration, action: ChaosAction)] {
        switch self {
        case .kill: return [(.zero, .kill(worker: worker))]
        case .terminate: return [(.zero, .terminate(worker: worker))]
        case .freeze:
            return [(.zero, .freeze(worker: worker)), (.seconds(1), .thaw(worker: worker))]
        case .loseSession:
            return [
                (.zero, .freeze(worker: worker)),
                (session + .seconds(2), .thaw(worker: worker)),
            ]
        case .refuseRequests:
            // NOT_LEADER_OR_FOLLOWER to Produce, UNKNOWN_SERVER_ERROR to Fetch,
            // REBALANCE_IN_PROGRESS to Heartbeat.
            return [
                (.zero, .kafka("err 0 6 5")), (.zero, .kafka("err 1 -1 20")),
                (.seconds(1), .kafka("err 12 27 2")),
            ]
        case .refuseCommits:
            // COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR.
            return [(.zero, .kafka("err 8 14 10")), (.seconds(1), .kafka("err 8 16 5"))]
        case .takeBrokerDown:
            return [(.zero, .kafka("down 1")), (.seconds(2), .kafka("up 1"))]
        case .slowBroker:
            return [(.zero, .kafka("rtt 1 300")), (.seconds(2), .kafka("rtt 1 0"))]
        case .restartAPNS: return [(.zero, .restartAPNS)]
        case .goAwayStorm:
            return (0..<10).map { (.milliseconds(200 * $0), .apns("goaway")) }
        case .resetStreams:
            return (0..<10).map { (.milliseconds(300 * $0), .apns("reset streams")) }
        case .serverErrors:
            return [(.zero, .apns("answer 503:ServiceUnavailable share 50% for 2s"))]
        case .outage: return [(.zero, .apns("answer 500:InternalServerError for 6s"))]
        case .tooManyRequests:
            return [(.zero, .apns("answer 429:TooManyRequests share 20% for 3s"))]
        case .expiredKey: return [(.zero, .apns("answer 403:ExpiredProviderToken for 6s"))]
        case .stall:
            return [(.zero, .apns("stall on")), (.seconds(3), .apns("stall off"))]
        }
    }
}
