// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import KafkaLog
internal import PushModel
internal import RecordFormats

extension Configuration.Kafka {
    static var keys: [ConfigurationKey<Self>] {
        [
            .required(
                "bootstrap", \.bootstrap, Self.bootstrap,
                "The brokers to connect to first; they name the others."),
            .value(
                "group", \.group, .text("1 to 249 of A-Z a-z 0-9 . _ -", matching: Self.name),
                "The consumer group: all workers of one fleet, and no other program."),
            .value(
                "clientID", \.clientID,
                .text("1 to 249 of A-Z a-z 0-9 . _ -", matching: Self.name),
                "How this worker calls itself in the brokers' logs and quotas."),
            .optional(
                "groupInstanceID", \.groupInstanceID,
                .text("1 to 249 of A-Z a-z 0-9 . _ -", matching: Self.name),
                "Static membership: a name that this worker, and only it, keeps over restarts, "
                    + "such as the name of a StatefulSet's pod; `auto` is the host's name. If it "
                    + "dies and is back within its session, 45s then instead of 15s, the other "
                    + "workers go on meanwhile. See docs/kafka.md."),
            .section("topics", \.topics, Topics.keys, "The topics of Lamplighter's own records."),
            .map(
                "events", \.events, names: Self.topicName(placeholder: "<topic>"), of: .standard,
                TopicBinding.keys,
                "The event topics, each with how its records are read. Without any, "
                    + "`lamplighter.events` is read."),
            .map(
                "eventTests", \.eventTests, names: Self.topicName(placeholder: "<topic>"),
                to: .bindingTests, showing: { $1.map(\.name).joined(separator: ", ") },
                "Examples of a topic's records and what is to become of each, which `lamplighter "
                    + "check` tries; see docs/events.md."),
            .section(
                "schemaRegistry", \.schemaRegistry, SchemaRegistry.keys,
                "The schema registry of records in Avro or Protobuf, by the API of Confluent's; see "
                    + "docs/record-schemas.md."),
            .optional(
                "startFrom", \.startFrom, .startFrom,
                "Where to begin in a topic of which the group has committed nothing, or whose "
                    + "commits have expired: at records of so long ago, or at one end of the log. By "
                    + "default as far back as the longest configured `ttl`, since older events "
                    + "are worth nothing."),
            .value(
                "skip", \.skip, .list(of: .coordinates, countMax: 1000),
                "Event records to pass over, such as one that the worker cannot get past."
            ).live,
            .map(
                "properties", \.properties,
                names: NameRule(
                    placeholder: "<property>", notation: "a librdkafka property",
                    pattern: "[a-z0-9_.]{1,128}", variableSeparator: ".", countMax: 200),
                to: .text(
                    "text that is not empty", matching: "[^\\x00]+",
                    schemaTypes: ["string", "number", "boolean"], shown: { $0 }),
                showing: Self.shown,
                "Passed to librdkafka as they are, such as `security.protocol`. "
                    + "Lamplighter itself implements `sasl.oauthbearer.method: oidc` and its "
                    + "properties; some properties have limits (below)."),
        ]
    }

    static let name = "[A-Za-z0-9._\\-]{1,249}"

    static func topicName(placeholder: String) -> NameRule {
        NameRule(
            placeholder: placeholder, notation: "a Kafka topic: 1 to 249 of A-Z a-z 0-9 . _ -",
            pattern: name, variableSeparator: ".", countMax: 1000)
    }

    private static var bootstrap: SettingType<String> {
        let broker = "(?:[A-Z_]+://)?(?:[A-Za-z0-9._\\-]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?"
        return .text("host:port, several joined by commas", matching: "\(broker)(?:,\(broker))*")
    }
}

extension Configuration.Kafka.Topics {
    static var keys: [ConfigurationKey<Self>] {
        let topic = SettingType.text(
            "a Kafka topic: 1 to 249 of A-Z a-z 0-9 . _ -", matching: Configuration.Kafka.name)
        return [
            .value(
                "registrations", \.registrations, topic, "The topic of registrations; compacted."),
            .value(
                "suppressions", \.suppressions, topic, "The topic of suppressions; compacted."),
            .value("deferred", \.deferred, topic, "The topic of deferred pushes; compacted."),
            .value("deadLetters", \.deadLetters, topic, "The topic of dead letters."),
            .optional(
                "outcomes", \.outcomes, topic,
                "A topic for a record of each push that has failed, and of a sample of the others "
                    + "(`delivery.outcomeSample`). Without it none is written. See "
                    + "docs/operations.md."),
            .value(
                "restrictions", \.restrictions, topic,
                "The topic of what operators pause, drop and limit; compacted."),
        ]
    }
}

extension TopicBinding {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "decode", \.decode, .choice,
                "`json`: Lamplighter's event, or any JSON with a `subject` template; `key`: the "
                    + "subject is the record's key and the value is not read; `cloudevents`: "
                    + "CloudEvents 1.0, in headers or as an envelope; `debezium`: a change of a "
                    + "database's row, whose fields are the row's; see docs/events.md."),
            .optional(
                "valueSchema", \.valueSchema, .schemaLanguage,
                "The values were written with a schema registry, in this language; their fields are "
                    + "read like those of JSON. See docs/record-schemas.md."),
            .optional(
                "keySchema", \.keySchema, .keyFormat,
                "The same of the keys, or how else they were written: `json`, such as `\"42\"` in "
                    + "quotation marks, or an integer in 8 or 4 bytes (`int64`, `int32`). `{key}` is "
                    + "then the string or the integer in them."),
            .optional(
                "subject", \.subject, .subjectTemplate,
                "The subject, made of the record: `{key}`, `{header:name}` and JSON pointers, as "
                    + "in `order-{/orderId}`, or `{key:/id}` for a field of a key that is JSON or "
                    + "has a schema. Without it, the one that the event names."),
            .value(
                "subjects", \.subjects,
                .list(of: .subjectTemplate, countMax: TopicBinding.subjectsMax),
                "Further subjects of the same record, made in the same way."),
            .optional(
                "installation", \.installation, .subjectTemplate,
                "Instead of a subject: the installation that the record is for, made in the same way, "
                    + "as in `{/deviceID}`. Needs `intake.allowInstallations`."),
            .value(
                "when", \.conditions, .conditions,
                "Only records that meet all of these are events, as in `{field: /status, equals: "
                    + "shipped}`; the others are counted as `filtered`."),
            .value(
                "missing", \.missing, .choice,
                "A record without a field that a template needs: `deadLetter`, or `skip` to leave "
                    + "it out; of several subjects, the one that cannot be made."),
            .value(
                "operations", \.operationList,
                .list(of: .choice, countMax: RowOperation.allCases.count),
                "With `decode: debezium`: the changes that are events. `read` is a row of the "
                    + "snapshot that a connector takes when it starts."),
            .optional(
                "kindsFrom", \.kindsFrom, .fieldPath,
                "The field with the kinds, a string or an array, instead of `kinds`."),
            .optional(
                "classesFrom", \.classesFrom, .fieldPath,
                "The field with the classes, instead of `classes`."),
            .section(
                "push", \.push, PushBinding.keys,
                "Makes a push with a payload of each record; without it the record says only that "
                    + "its subject has changed."),
            .optional(
                "app", \.app, .bundleID,
                "The app of events that name none; may be left out when only one is configured."
            ).live,
            .value(
                "kinds", \.kinds, .list(of: .kind, countMax: 64),
                "Only controls and widgets of these kinds, unless the event says; empty for any."
            ).live,
            .value(
                "classes", \.classes, .tokenClasses,
                "Only tokens of these classes, unless the event says."
            ).live,
            .optional(
                "ttl", \.ttl, .duration(.seconds(1) ... .seconds(30 * 86_400)),
                "How long its pushes are worth sending, instead of `planning.ttl` and "
                    + "`planning.payloadTTL`."
            ).live,
            .value(
                "delay", \.delay, .duration(.zero ... .seconds(900)),
                "How long to wait before its pushes, where the state that a device then asks for "
                    + "lags behind the event."),
        ]
    }
}

extension PushBinding {
    static var keys: [ConfigurationKey<Self>] {
        [
            .optional(
                "type", \.type,
                .choice(
                    PushType.allTypes.filter(\.row.carriesPayload).map { ($0.name, $0) }),
                "`apns-push-type`; by default the payload tells it."),
            .optional(
                "payload", \.payload, .pushTemplate,
                "The payload, with `{/field}` where a value of the record goes; see "
                    + "docs/events.md."),
            .optional(
                "collapseID", \.collapseID, .subjectTemplate,
                "`apns-collapse-id`, made as a subject is."),
            .optional(
                "priority", \.priority, .choice([("10", 10), ("5", 5), ("1", 1)]),
                "`apns-priority`; by default the push type's own."),
        ]
    }
}

extension TopicBinding {
    fileprivate var operationList: [RowOperation] {
        get { RowOperation.allCases.filter(operations.contains) }
        set { operations = Set(newValue) }
    }
}

extension SettingType where Value == String {
    static var bundleID: Self {
        .text(
            "a bundle identifier: 1 to 128 of A-Z a-z 0-9 . -",
            matching: "[A-Za-z0-9.\\-]{1,128}")
    }

    static var kind: Self { .text("a kind: 1 to 256 characters", matching: "[^\\x00]{1,256}") }

}

extension SettingType where Value == SubjectTemplate {
    static var subjectTemplate: Self {
        .scalar(
            "text with {key}, {header:name} or {/json/pointer} in it",
            schema: .object([("type", "string")]), write: \.text
        ) { text throws(Complaint) in
            do throws(SubjectTemplateError) {
                return try SubjectTemplate(text)
            } catch {
                throw Complaint(wrong: "is \(quoted(text))", remedy: error.message)
            }
        }
    }
}

extension SettingType where Value == TokenClassSet {
    static var tokenClasses: Self {
        let names = SettingType<TokenClass>.choice(TokenClass.allCases.map { ($0.name, $0) })
        return SettingType<[TokenClass]>.list(of: names, countMax: TokenClass.allCases.count)
            .mapped { classes in
                classes.reduce(into: []) { $0.insert(TokenClassSet($1)) }
            } back: { set in
                TokenClass.allCases.filter(set.contains)
            }
    }
}

extension SettingType where Value == StartFrom {
    static var startFrom: Self {
        let reach: ClosedRange<Duration> = .zero ... .seconds(30 * 86_400)
        return .scalar(
            "earliest, latest or a duration up to \(reach.upperBound.notation)",
            schema: .object([
                ("type", "string"), ("pattern", "^(?:earliest|latest|[0-9]+(?:ms|s|m|h|d))$"),
            ]),
            write: { value in
                switch value {
                case .earliest: "earliest"
                case .latest: "latest"
                case .ago(let duration): duration.notation
                }
            },
            parse: { text in
                switch text {
                case "earliest": .earliest
                case "latest": .latest
                default:
                    Duration(notation: text).flatMap { reach.contains($0) ? .ago($0) : nil }
                }
            })
    }
}

extension SettingType where Value == Configuration.Kafka.RecordCoordinates {
    static var coordinates: Self {
        .scalar(
            "topic/partition/offset",
            schema: .object([
                ("type", "string"), ("pattern", "^\(Configuration.Kafka.name)/[0-9]+/[0-9]+$"),
            ]),
            write: { "\($0.topic)/\($0.partition)/\($0.offset)" },
            parse: { text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                guard parts.count == 3, !parts[0].isEmpty, let partition = Int32(parts[1]),
                    let offset = Int64(parts[2]), partition >= 0, offset >= 0
                else { return nil }
                return Value(topic: String(parts[0]), partition: partition, offset: offset)
            })
    }
}
