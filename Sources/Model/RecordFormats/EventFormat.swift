// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import Simdjson

// Records of events topics in Lamplighter's own format. What their bindings and CloudEvents add is
// decided in Intake.

extension RecordFormat {
    package static var event: RecordFormat {
        RecordFormat(
            "event", title: "Event",
            """
            A state change: the value of a record of an events topic whose binding says `decode: \
            json` and has no subject template. All members are optional, null counts as absent, \
            unknown members are ignored. A null or empty value says: the subject in the key changed. \
            An object with `specversion` is read as a structured CloudEvent instead. Lengths are \
            bounded in UTF-8 bytes.
            """, fields: EventField.self, example: exampleEvent,
            constraints: [
                oneLife, ("allOf", .array(EventPayload.eventConditions + [oneName])),
            ])
    }

    /// `ttlSeconds` and `expiresAt` exclude each other.
    private static var oneLife: (String, JSONText) {
        ("not", both((.ttlSeconds, "integer"), (.expiresAt, "string")))
    }

    /// So do `subject` and `installation`.
    private static var oneName: JSONText {
        .object([("not", both((.subject, "string"), (.installation, "string")))])
    }

    /// What an event satisfies that has both members.
    private static func both(_ fields: (EventField, JSONText)...) -> JSONText {
        .object([
            ("required", .array(fields.map { .string($0.0.name) })),
            ("properties", .object(fields.map { ($0.0.name, .object([("type", $0.1)])) })),
        ])
    }
}

package enum EventField: UInt8, RecordField {
    case v, id, subject, installation, time, app, environment, kinds, all, classes, ttlSeconds
    case expiresAt, priority, collapseID, apnsExpiration, pushType, payload, shard

    package static let table = NameTable<Self>()

    package var row: FieldRow {
        switch self {
        case .v:
            .optional(
                "v", .version, "Version of the format, 1 if absent; another one is unreadable.")
        case .id:
            .optional(
                "id", .text(RecordLimits.subjectBytes),
                """
                The producer's name for the event: what fails of it has the name in its dead letter \
                and in the log.
                """)
        case .subject:
            .optional(
                "subject", .text(RecordLimits.subjectBytes),
                "What changed; the record's key if absent.")
        case .installation:
            .optional(
                "installation", .keyPart,
                """
                Instead of a subject: only the tokens of this installation, whatever they show. Only \
                where `intake.allowInstallations` is set; without `subject` and `all`. The record's key \
                then names nothing, and decides the partition.
                """)
        case .time:
            .optional(
                "time", .instant,
                """
                When it changed; the record's timestamp if absent, or if it is more than an hour after \
                both that and the worker's clock.
                """)
        case .app:
            .optional(
                "app", .text(RecordLimits.keyPartBytes),
                """
                Bundle identifier; required when several are configured and the topic's binding \
                names none.
                """)
        case .environment:
            .optional(
                "environment", .environment,
                """
                Apple's entitlement word; `sandbox` is read as `development`. If absent, all \
                environments of the app.
                """)
        case .kinds:
            .optional(
                "kinds", .array(.text(RecordLimits.kindBytes), count: RecordLimits.kinds),
                """
                Only controls and widgets of these kinds. Without a subject and a key: all of these \
                kinds, where `intake.allowKindWide` is set.
                """)
        case .all:
            .optional(
                "all", .flag,
                """
                Every control and widget of the app, whatever it shows, as `reloadAllControls()` and \
                `reloadAllTimelines()` do on one device. Only where `intake.allowKindWide` is set, \
                without a subject and without a key.
                """)
        case .classes:
            .optional(
                "classes", .array(.oneOf(TokenClass.words), count: 1...Int.max),
                "Only these classes of token.")
        case .ttlSeconds:
            .optional(
                "ttlSeconds", .integer(RecordLimits.ttlSeconds),
                """
                Life of the push, from the later of `time` and the record's timestamp. Default 24 h \
                without and 1 h with a payload.
                """)
        case .expiresAt:
            .optional(
                "expiresAt", .instant,
                """
                When the push is worthless; more than 30 days ahead is read as 30 days. Not beside \
                `ttlSeconds`.
                """)
        case .priority:
            .optional(
                "priority", .oneOfNumbers(EventFields.priorities),
                """
                `apns-priority`; not 10 for a background push, not 1 for a Live Activity.
                """)
        case .collapseID:
            .optional(
                "collapseID", .collapseID,
                """
                `apns-collapse-id`: pushes with a payload and the same one replace each other. An \
                alert without one is given a UUID made of the event's topic, partition and offset \
                and of its payload, so that one that is sent again replaces itself; no other push is \
                given one.
                """)
        case .apnsExpiration:
            .optional(
                "apnsExpiration", .oneOf(EventFields.expirations.map(\.word)),
                """
                `none` leaves `apns-expiration` out, `deadline` sends the end of the push's life.
                """)
        case .pushType:
            .optional(
                "pushType", .pushType,
                """
                `apns-push-type`, and with it whom the push is for: tokens of that type's class. If \
                absent, it is told by the payload. `controls`, `widgets`, `background` and \
                `location` need no payload.
                """)
        case .payload:
            .optional(
                "payload", .payload,
                """
                The push's body, at most \(PushType.alert.row.bodyBytesMax) bytes (of VoIP, and of \
                what goes to channels alone, 5120) \
                without white space. Without `pushType` it is a Live Activity's if `aps` has \
                `content-state`, or `"event": "end"` and a `timestamp`; else an alert if it has \
                `alert`, `badge` or `sound`; else a background push if it has \
                `"content-available": 1`.
                """)
        case .shard:
            .optional(
                "shard", .object(ShardField.rows),
                """
                Written by workers, not by producers: the part of a large event's audience that this \
                record is for, and where the whole event stands. `index` is less than `of`.
                """)
        }
    }
}

// MARK: Decoder

/// The fields that an event record gives, whatever its format. Its binding supplies the others.
package struct EventFields {
    package var id: UnsafeRawBufferPointer?
    /// The `traceparent` of the record, else that of the CloudEvent.
    package var traceparent: UnsafeRawBufferPointer?
    package var subject: UnsafeRawBufferPointer?
    package var installation: UnsafeRawBufferPointer?
    package var app: UnsafeRawBufferPointer?
    package var environment: PushEnvironment?
    package var kinds: [String]?
    package var all = false
    package var classes: TokenClassSet?
    package var time: WallTime?
    package var ttl: Duration?
    package var expiresAt: WallTime?
    package var priority: UInt8?
    package var collapseID: String?
    package var expiration: ExpirationRule?
    package var pushType: PushType?
    package var payload: EventPayload?
    package var shard: EventShard?
    /// What was passed over.
    package var remark: Remark?

    package enum Remark: String, Sendable {
        /// Attributes of a CloudEvent that are not what its format says.
        case timeAttribute, subjectAttribute
        /// Members at the top that look like a push and are none.
        case aps, message, notification
    }

    package init() {}

    /// Whether the event has no filter, no expiry, no payload and no header of its own. A collapse
    /// identifier does not count: without a payload it has no effect.
    package var isPlain: Bool {
        environment == nil && kinds == nil && classes == nil && ttl == nil && expiresAt == nil
            && !all && priority == nil && expiration == nil && payload == nil && pushType == nil
    }
}

extension EventFields.Remark {
    fileprivate init?(stray name: UnsafeRawBufferPointer) {
        if name.equals("aps") {
            self = .aps
        } else if name.equals("message") {
            self = .message
        } else if name.equals("notification") {
            self = .notification
        } else {
            return nil
        }
    }
}

extension PushType {
    /// Why pushes of this type must not have the priority; nil if they may. Priorities are as Apple
    /// states them for each push type.
    package func problem(ofPriority priority: UInt8?) -> String? {
        if self == .background, priority == 10 {
            return "a background push has priority 5 or 1, never 10"
        }
        if self == .liveActivity, priority == 1 {
            return "a Live Activity's push has priority 5 or 10"
        }
        return nil
    }
}

extension EventFields {
    fileprivate static let priorities: [Int64] = [1, 5, 10]
    fileprivate static let expirations: [ExpirationRule] = [.none, .deadline]

    /// Reads an event in Lamplighter's own format. A member that is null counts as absent; of
    /// duplicates the last wins; unknown members are ignored.
    /// - Parameter moment: what the instants of a payload are held against. Those of a shard have
    ///   been, when its event was read.
    package init(
        json object: JSONObject, at moment: RecordMoment? = nil
    ) throws(UnreadableRecord) {
        var body: JSONValue?
        for (name, value) in object where !value.isNull {
            guard let field = EventField.table.find(name) else {
                remark = remark ?? Remark(stray: name)
                continue
            }
            if field == .payload { body = value } else { try read(field, value) }
        }
        if ttl != nil, expiresAt != nil {
            throw .field("expiresAt", "left out where ttlSeconds is given")
        }
        if let body {
            payload = try EventPayload(
                json: body, as: pushType, at: shard == nil ? moment : nil)
        }
        try checkPush()
    }

    /// What push type, payload, priority and classes demand of each other.
    private mutating func checkPush() throws(UnreadableRecord) {
        if let pushType, payload == nil {
            guard let body = pushType.row.emptyBody else {
                throw UnreadableRecord(
                    .invalidPayload, "a push of type \(pushType.name) needs a payload")
            }
            if pushType.row.carriesPayload {
                payload = EventPayload(body: Array(body.utf8), type: pushType)
            }
        }
        guard let type = payload?.type ?? pushType else { return }
        if let problem = type.problem(ofPriority: priority) {
            throw UnreadableRecord(.invalidPriority, problem)
        }
    }

    private mutating func read(_ field: EventField, _ value: JSONValue) throws(UnreadableRecord) {
        switch field {
        case .v: try value.checkVersion()
        case .id: id = try value.text(field, bytes: RecordLimits.subjectBytes)
        case .subject: subject = try value.text(field, bytes: RecordLimits.subjectBytes)
        case .installation: installation = try value.keyPart(field)
        case .time: time = try value.instant(field)
        case .app: app = try value.text(field, bytes: RecordLimits.keyPartBytes)
        case .environment: environment = try value.environment(field)
        case .kinds: kinds = try Self.kinds(value)
        case .all:
            guard value.bool == true else { throw .field("all", "true") }
            all = true
        case .classes: classes = try Self.classes(value)
        case .ttlSeconds:
            ttl = .seconds(try value.integer(field, in: RecordLimits.ttlSeconds))
        case .expiresAt: expiresAt = try value.instant(field)
        case .priority: priority = try Self.priority(value)
        case .collapseID: collapseID = try Self.collapseID(value)
        case .apnsExpiration:
            expiration = try ExpirationRule(value, among: Self.expirations, in: field)
        case .pushType: pushType = try Self.pushType(value)
        case .payload: break
        case .shard: shard = try EventShard(value, in: field)
        }
    }

    private static func kinds(_ value: JSONValue) throws(UnreadableRecord) -> [String] {
        var kinds: [String] = []
        for kind in try value.elements(EventField.kinds) {
            kinds.append(String(try kind.text(EventField.kinds, bytes: RecordLimits.kindBytes)))
            guard kinds.count <= RecordLimits.kindsMax else { break }
        }
        guard RecordLimits.kinds.contains(kinds.count) else {
            throw .field("kinds", "an array of 1 to \(RecordLimits.kindsMax) strings")
        }
        return kinds
    }

    private static func classes(_ value: JSONValue) throws(UnreadableRecord) -> TokenClassSet {
        var classes: TokenClassSet = []
        for word in try value.elements(EventField.classes) {
            guard let text = word.string else { throw badClasses }
            classes.insert(try tokenClass(text))
        }
        guard !classes.isEmpty else { throw badClasses }
        return classes
    }

    /// An unknown word is refused: leaving it out would send to others than the event names.
    package static func tokenClass(
        _ word: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> TokenClassSet {
        guard let known = TokenClass(word) else { throw badClasses }
        return TokenClassSet(known)
    }

    private static var badClasses: UnreadableRecord {
        .field("classes", "one or more of \(TokenClass.words.joined(separator: ", "))")
    }

    private static func priority(_ value: JSONValue) throws(UnreadableRecord) -> UInt8 {
        guard let priority = value.integer, priorities.contains(priority) else {
            throw .field("priority", "1, 5 or 10")
        }
        return UInt8(priority)
    }

    private static func pushType(_ value: JSONValue) throws(UnreadableRecord) -> PushType {
        guard let word = value.string else { throw badPushType }
        return try pushType(word)
    }

    package static func pushType(
        _ word: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> PushType {
        guard let known = PushType(word) else { throw badPushType }
        return known
    }

    private static var badPushType: UnreadableRecord {
        .field("pushType", "one of \(PushType.all.map(\.name).joined(separator: ", "))")
    }

    static func collapseID(_ value: JSONValue) throws(UnreadableRecord) -> String {
        guard let text = value.string else { throw badCollapseID }
        return try collapseID(text)
    }

    /// Checks a value of `apns-collapse-id`: printable ASCII without a space at either end, where
    /// HTTP/2 forbids it.
    package static func collapseID(
        _ text: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> String {
        guard RecordLimits.collapseIDBytes.contains(text.count),
            text.allSatisfy({ (0x20...0x7E).contains($0) }),
            text[0] != 0x20, text[text.count - 1] != 0x20
        else { throw badCollapseID }
        return String(text)
    }

    private static var badCollapseID: UnreadableRecord {
        .field("collapseID", "1 to 64 printable ASCII characters, no space at the ends")
    }
}

// MARK: Encoder

package enum EventEncoder {
    package static func value(_ event: EventDraft) -> [UInt8] {
        JSONWriter.object(of: EventField.self) { json in
            json.member(.v, RecordLimits.version)
            json.member(.id, event.id)
            json.member(.subject, event.subject)
            json.member(.installation, event.installation)
            json.member(.time, event.time)
            json.member(.app, event.app)
            json.member(.environment, event.environment?.name)
            json.member(.kinds, array: event.kinds)
            json.member(.all, flag: event.all)
            json.member(.classes, array: event.classes.map(\.name))
            json.member(.ttlSeconds, event.ttlSeconds)
            json.member(.expiresAt, event.expiresAt)
            json.member(.priority, event.priority)
            json.member(.collapseID, event.collapseID)
            json.member(.apnsExpiration, event.expiration?.word)
            json.member(.pushType, event.pushType?.name)
            json.member(.payload, raw: event.payload)
            json.member(.shard, event.shard)
        }
    }
}
