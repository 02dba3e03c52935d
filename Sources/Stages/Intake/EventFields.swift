// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// What a record says for itself, whatever its format; the rest comes from its binding.
struct EventFields {
    var subject: UnsafeRawBufferPointer?
    var app: UnsafeRawBufferPointer?
    var environment: PushEnvironment?
    var kinds: [String]?
    var classes: TokenClassSet?
    var time: WallTime?
    var ttl: Duration?
    var expiresAt: WallTime?
    var priority: UInt8?
    var collapseID: String?
    var expiration: ExpirationRule?
    var payload: EventPayload?
    var shard: EventShard?

    /// It names no token's kind, class or environment, no expiry and no header.
    var isPlain: Bool {
        environment == nil && kinds == nil && classes == nil && ttl == nil && expiresAt == nil
            && priority == nil && expiration == nil && payload == nil
    }
}

/// The members of an event of ours.
package enum EventField: String, CaseIterable, Sendable {
    case v, id, subject, time, app, environment, kinds, classes, ttlSeconds, expiresAt, priority
    case collapseID, apnsExpiration, payload, shard

    static let table = NameTable<Self>()
}

extension EventFields {
    /// Reads an event of ours. A member that is null counts as absent; of duplicates the last wins;
    /// unknown members are ignored.
    init(json object: JSONObject) throws(UnreadableRecord) {
        for (name, value) in object where !value.isNull {
            guard let field = EventField.table.find(name) else { continue }
            try read(field, value)
        }
        if ttl != nil, expiresAt != nil {
            throw .field("expiresAt", "left out where ttlSeconds is given")
        }
        if priority == 10, payload?.type == .background {
            throw UnreadableRecord(
                .invalidPriority, "a background push must not have priority 10: leave it out")
        }
    }

    private mutating func read(_ field: EventField, _ value: JSONValue) throws(UnreadableRecord) {
        switch field {
        case .v: try value.checkVersion()
        case .id: _ = try value.text("id", bytes: 1...RecordLimits.subjectBytesMax)
        case .subject: subject = try value.text("subject", bytes: 1...RecordLimits.subjectBytesMax)
        case .time: time = try value.instant("time")
        case .app: app = try value.text("app", bytes: 1...RecordLimits.keyPartBytesMax)
        case .environment: environment = try value.environment("environment")
        case .kinds: kinds = try Self.kinds(value)
        case .classes: classes = try Self.classes(value)
        case .ttlSeconds:
            ttl = .seconds(try value.integer("ttlSeconds", in: 1...RecordLimits.ttlSecondsMax))
        case .expiresAt: expiresAt = try value.instant("expiresAt")
        case .priority: priority = try Self.priority(value)
        case .collapseID:
            guard let text = value.string else { throw Self.badCollapseID }
            collapseID = try Self.collapseID(text)
        case .apnsExpiration: expiration = try Self.expiration(value)
        case .payload: payload = try EventPayload(json: value)
        case .shard: shard = try EventShard(json: value)
        }
    }

    private static func kinds(_ value: JSONValue) throws(UnreadableRecord) -> [String] {
        var kinds: [String] = []
        for kind in try value.elements("kinds") {
            kinds.append(String(try kind.text("kinds", bytes: 1...RecordLimits.kindBytesMax)))
            guard kinds.count <= RecordLimits.kindsMax else { break }
        }
        guard (1...RecordLimits.kindsMax).contains(kinds.count) else {
            throw .field("kinds", "an array of 1 to \(RecordLimits.kindsMax) strings")
        }
        return kinds
    }

    private static func classes(_ value: JSONValue) throws(UnreadableRecord) -> TokenClassSet {
        var classes: TokenClassSet = []
        for word in try value.elements("classes") {
            guard let text = word.string else { throw badClasses }
            classes.insert(try tokenClass(text))
        }
        guard !classes.isEmpty else { throw badClasses }
        return classes
    }

    /// An unknown word is refused: leaving it out would send to others than the event names.
    static func tokenClass(_ word: UnsafeRawBufferPointer) throws(UnreadableRecord) -> TokenClassSet
    {
        guard let known = TokenClass(word) else { throw badClasses }
        return TokenClassSet(known)
    }

    private static var badClasses: UnreadableRecord {
        let words = TokenClass.allCases.map(\.name).joined(separator: ", ")
        return .field("classes", "one or more of \(words)")
    }

    private static func priority(_ value: JSONValue) throws(UnreadableRecord) -> UInt8 {
        switch value.integer {
        case 1: 1
        case 5: 5
        case 10: 10
        default: throw .field("priority", "1, 5 or 10")
        }
    }

    /// A header's value: printable ASCII, with no space at either end, where HTTP/2 forbids it.
    static func collapseID(_ text: UnsafeRawBufferPointer) throws(UnreadableRecord) -> String {
        guard (1...RecordLimits.collapseIDBytesMax).contains(text.count),
            text.allSatisfy({ (0x20...0x7E).contains($0) }),
            text[0] != 0x20, text[text.count - 1] != 0x20
        else { throw badCollapseID }
        return String(text)
    }

    private static var badCollapseID: UnreadableRecord {
        .field("collapseID", "1 to 64 printable ASCII characters, no space at the ends")
    }

    private static func expiration(_ value: JSONValue) throws(UnreadableRecord) -> ExpirationRule {
        guard let text = value.string else { throw .field("apnsExpiration", "none or deadline") }
        if text.equals("none") { return .none }
        if text.equals("deadline") { return .deadline }
        throw .field("apnsExpiration", "none or deadline")
    }
}

extension EventPayload {
    /// Takes a push's body as it is, minified. Its type follows from `aps`.
    init(json value: JSONValue) throws(UnreadableRecord) {
        guard let object = value.object else {
            throw UnreadableRecord(.invalidPayload, "payload must be an object")
        }
        let dictionaries = object.reduce(0) { $1.key.equals("aps") ? $0 + 1 : $0 }
        guard let aps = object["aps"]?.object, dictionaries == 1 else {
            throw UnreadableRecord(.invalidPayload, "payload must have one object aps")
        }
        let type: PushType = Self.interrupts(aps) ? .alert : .background
        if type == .background, aps["content-available"]?.integer != 1 {
            throw UnreadableRecord(
                .invalidPayload,
                "payload.aps needs alert, badge or sound, or \"content-available\": 1: "
                    + "without any of them APNs accepts the push and the device ignores it")
        }
        var body: [UInt8] = []
        guard value.minify(into: &body, bytesMax: type.row.bodyBytesMax) else {
            throw UnreadableRecord(
                .payloadTooLarge,
                "payload is over \(type.row.bodyBytesMax) bytes, the most that APNs takes")
        }
        self.init(body: body, type: type)
    }

    private static func interrupts(_ aps: JSONObject) -> Bool {
        aps.contains { name, value in
            !value.isNull
                && (name.equals("alert") || name.equals("badge") || name.equals("sound"))
        }
    }
}
