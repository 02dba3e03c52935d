// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats

/// A commit on its way to Kafka.
struct SimulatedCommit {
    let partition: Int
    let epoch: Int
    let offset: Int64
    let note: SimulatedNote?
    let dueAt: MonotonicTime
}

/// A token as APNs knows it.
struct SimulatedToken: Hashable {
    let environment: PushEnvironment
    let tokenClass: TokenClass
    let bytes: [UInt8]

    /// How a dead letter names it: two environments may have the same bytes.
    var nameInLetters: String {
        "\"\(Hexadecimal.encode(bytes))\",\"environment\":\"\(environment.name)\""
    }
}

/// One subject of one target of a registration.
struct SimulatedRow {
    let token: SimulatedToken
    let kind: String?
    let subject: String
    let hearsChanges: Bool
}

struct SimulatedEvent {
    /// Counts events over all partitions; a payload names its event by it.
    let serial: Int
    /// Nil reloads every control of the kinds.
    var subject: String?
    var kinds: [String] = []
    var classes: [TokenClass] = []
    var environment: PushEnvironment?
    var expiresAt: WallTime
    var payload: Payload?
    /// The part of the tokens that it is for, if it is a shard.
    var tokens: TokenShard?
    /// The topic of the event that it is a shard of.
    var source: Int?

    struct Payload {
        let type: PushType
        let body: String
        let collapseID: String?
    }

    /// Pushes of one group replace each other, the newest wins.
    var group: String {
        guard let payload else { return "" }
        return payload.collapseID.map { "\(payload.type.name) \($0)" } ?? "event \(serial)"
    }

    /// What stands for an installation, which has a row of this subject beside each other one.
    static func subject(ofInstallation name: String) -> String { "installation \(name)" }

    /// Whether the event is for what this row shows.
    func matches(_ row: SimulatedRow) -> Bool {
        if let subject {
            guard row.subject == subject else { return false }
        } else {
            guard row.token.tokenClass == .control else { return false }
        }
        if let tokens, !row.token.bytes.withUnsafeBytes({ tokens.contains($0) }) { return false }
        if let environment, environment != row.token.environment { return false }
        if !classes.isEmpty, !classes.contains(row.token.tokenClass) { return false }
        if !kinds.isEmpty, row.kind.map({ kinds.contains($0) }) != true { return false }
        return payload == nil ? row.hearsChanges : row.token.tokenClass == .device
    }
}

/// A record of a topic that every worker reads as a table.
struct SimulatedTableRecord {
    let key: [UInt8]
    let value: [UInt8]?
    let timestamp: WallTime
    let meaning: Meaning
    /// Where a registration stands in its topic, once it is there.
    var partition: Int32 = 0
    var offset: Int64 = 0

    enum Meaning {
        case registered([SimulatedRow], at: WallTime)
        case unregistered
        case unreadable
        /// What a suppression says is read from its text, as every other reader would.
        case suppression
    }
}

/// How APNs and the network behave at the moment.
enum SimulatedWeather: UInt64, CaseIterable {
    case fair, rough, faults, refused, silent, slow
    /// Most pushes are at fault.
    case rejecting
    /// Nothing answers for long.
    case stalled
}

/// The fate of one push, decided when it is handed over.
enum SimulatedAnswer: String, CaseIterable {
    case accepted = "200"
    case deadAfter = "410 after"
    case deadBefore = "410 before"
    case deadWithoutTime = "410 without time"
    case badToken = "400 token"
    case rejected = "400 other"
    case badTopic = "400 topic"
    case credential = "403"
    case tooMany = "429"
    case fault = "500"
    case shutdown = "503 shutdown"
    case unavailable = "503"
    case unknown
    case unprocessed
    case expired

    /// - Parameter isAgain: whether the push has failed before. There are few of these, so many of
    ///   them meet with a misfortune, whatever the weather.
    static func next(
        _ weather: SimulatedWeather, isAgain: Bool, _ dice: inout SplitMix64
    ) -> Self {
        if isAgain, dice.next(below: 3) == 0 { return misfortune(&dice) }
        let roll = dice.next(below: 100)
        switch weather {
        case .fair: return roll < 94 ? .accepted : misfortune(&dice)
        case .rough: return roll < 50 ? .accepted : misfortune(&dice)
        case .faults: return roll < 15 ? .accepted : roll < 60 ? .unavailable : .fault
        case .refused: return roll < 30 ? .accepted : roll < 60 ? .credential : .badTopic
        case .silent: return roll < 20 ? .accepted : .unknown
        case .rejecting: return roll < 20 ? .accepted : roll < 90 ? .rejected : misfortune(&dice)
        case .slow, .stalled: return roll < 80 ? .accepted : .expired
        }
    }

    private static func misfortune(_ dice: inout SplitMix64) -> Self {
        allCases[1 + Int(dice.next(below: UInt64(allCases.count - 1)))]
    }

    /// - Parameter apart: how far from the registration's time the token's death is, by APNs's clock.
    func outcome(
        _ slot: PushSlot, registeredAt: WallTime, apart: Int64
    ) -> PushOutcome {
        func answered(
            _ status: UInt16, _ reason: APNSReason, _ timestamp: Int64 = -1
        ) -> PushOutcome {
            PushOutcome(
                slot: slot, kind: .answered, status: status, reason: reason,
                apnsTimestamp: timestamp)
        }
        return switch self {
        case .accepted: answered(200, .none)
        case .deadAfter: answered(410, .unregistered, registeredAt.milliseconds + apart)
        case .deadBefore: answered(410, .unregistered, registeredAt.milliseconds - apart)
        case .deadWithoutTime: answered(410, .expiredToken)
        case .badToken: answered(400, .badDeviceToken)
        case .rejected: answered(400, .badExpirationDate)
        case .badTopic: answered(400, .badTopic)
        case .credential: answered(403, .invalidProviderToken)
        case .tooMany: answered(429, .tooManyRequests)
        case .fault: answered(500, .internalServerError)
        case .shutdown: answered(503, .shutdown)
        case .unavailable: answered(503, .serviceUnavailable)
        case .unknown: PushOutcome(slot: slot, kind: .unknown)
        case .unprocessed: PushOutcome(slot: slot, kind: .unprocessed)
        case .expired: PushOutcome(slot: slot, kind: .expired)
        }
    }
}

extension SimulatedToken {
    func isBehind(_ progress: FanOutProgress) -> Bool {
        bytes.withUnsafeBytes { progress.isBehind($0) }
    }
}
