// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

/// What the tables of good and bad records are decoded with.
enum IntakeFixtures {
    static let now = WallTime(rfc3339: "2026-11-21T12:00:00.000Z")!

    static func routing(_ apps: [String] = ["com.example.Home"]) -> RoutingTable {
        var routing = RoutingTable()
        routing.add(credential: "main", apps: apps, environments: [.production, .development])
        return routing
    }
}

/// A decoded event with its bytes copied.
struct EventCopy {
    var app: AppID
    var environment: PushEnvironment?
    var subject: String
    var installation: String?
    var furtherSubjects: [String]
    var kinds: [String]
    var classes: TokenClassSet
    var time: WallTime
    /// From `IntakeFixtures.now`, which is the record's timestamp too.
    var life: Duration
    var delay: Duration
    var priority: UInt8?
    var collapseID: String?
    var expiration: ExpirationRule?
    var payload: String?
    var payloadType: PushType?
    var correlation: Correlation

    init(_ event: Event) {
        app = event.app
        environment = event.environment
        subject = String(decoding: event.subject, as: UTF8.self)
        installation = event.installation
        furtherSubjects = event.furtherSubjects.map { String(decoding: $0, as: UTF8.self) }
        kinds = event.kinds
        classes = event.classes
        time = event.time
        life = event.expiresAt - IntakeFixtures.now
        delay = event.delay
        priority = event.priority
        collapseID = event.collapseID
        expiration = event.expiration
        payload = event.payload.map { String(decoding: $0.body, as: UTF8.self) }
        payloadType = event.payload?.type
        correlation = Correlation(checking: event.id, traceparent: event.traceparent)
    }
}

/// The binding leaves a record out.
struct RecordLeftOut: Error {}

/// Decodes one record with one binding.
func decodeEvent(
    _ value: [UInt8]?, key: String? = "door-42", headers: [String: String] = [:],
    binding: TopicBinding = .standard, apps: [String] = ["com.example.Home"],
    settings: EventSettings = EventSettings(), timestamp: WallTime = IntakeFixtures.now
) throws -> EventCopy {
    var decoder = try EventDecoder(
        bindings: [binding], routing: IntakeFixtures.routing(apps), settings: settings)
    return try lending(key.map { Array($0.utf8) }) { key in
        try lending(value) { value in
            try lendingHeaders(headers) { lookup in
                let event = try decoder.decode(
                    EventRecord(binding: 0, key: key, value: value, timestamp: timestamp),
                    now: IntakeFixtures.now, header: lookup)
                guard let event else { throw RecordLeftOut() }
                return EventCopy(event)
            }
        }
    }
}

func decodeEvent(
    _ value: String, key: String? = "door-42", headers: [String: String] = [:],
    binding: TopicBinding = .standard, apps: [String] = ["com.example.Home"],
    settings: EventSettings = EventSettings(), timestamp: WallTime = IntakeFixtures.now
) throws -> EventCopy {
    try decodeEvent(
        Array(value.utf8), key: key, headers: headers, binding: binding, apps: apps,
        settings: settings, timestamp: timestamp)
}

/// The code that a record is refused with; nil when it is read.
func refusal(_ decode: () throws -> Void) -> UnreadableCode? {
    do {
        try decode()
        return nil
    } catch {
        return (error as? UnreadableRecord).flatMap { UnreadableCode(rawValue: $0.code) }
    }
}

func lending<Result>(
    _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> Result
) rethrows -> Result {
    guard let bytes else { return try body(nil) }
    return try bytes.withUnsafeBytes { try body($0) }
}

/// Headers at addresses that hold for the call.
func lendingHeaders<Result>(
    _ headers: [String: String], _ body: (EventRecord.HeaderLookup) throws -> Result
) rethrows -> Result {
    let copies = headers.mapValues { text in
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: text.utf8.count, alignment: 1)
        copy.copyBytes(from: text.utf8)
        return copy
    }
    defer { for copy in copies.values { copy.deallocate() } }
    return try body { name in copies[name].map { UnsafeRawBufferPointer($0) } }
}

/// SplitMix64: the same numbers for the same seed on every machine.
struct IntakeRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }

    /// A sample with up to two bytes changed, a part cut or doubled.
    mutating func damaged(_ sample: String) -> [UInt8] {
        var bytes = Array(sample.utf8)
        for _ in 0..<Int.random(in: 0...2, using: &self) where !bytes.isEmpty {
            let position = Int.random(in: 0..<bytes.count, using: &self)
            switch Int.random(in: 0..<4, using: &self) {
            case 0: bytes.removeSubrange(position...)
            case 1: bytes.insert(contentsOf: bytes[position...].prefix(9), at: position)
            default: bytes[position] = UInt8.random(in: 0...255, using: &self)
            }
        }
        return bytes
    }
}
