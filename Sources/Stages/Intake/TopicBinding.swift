// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats
package import SchemaCodecs

/// How the records of one Kafka topic are read as events.
package struct TopicBinding: Sendable, Equatable {
    /// What a record's value is.
    ///
    /// - `key`: never looked at. The record says that the subject changed, nothing else.
    /// - `json`, without a subject template: an event of ours (docs/schemas/event.schema.json), or
    ///   a CloudEvent in either mode. A null or empty value says "the subject in the key changed";
    ///   such a record's headers are not looked at, so a topic that carries binary CloudEvents
    ///   without data must say `cloudevents`.
    /// - `json`, with a subject template: the producer's own document. Only the template's pointers
    ///   are read from it, so that a field that happens to be called `priority` means nothing here.
    /// - `cloudevents`: a CloudEvent 1.0; anything else is unreadable. A subject template, if any,
    ///   replaces the attribute `subject`; its pointers start at the record's value.
    /// - `debezium`: a change of a database's row, as Debezium writes it. Fields are those of the
    ///   row; a tombstone is no event.
    package enum Decode: String, CaseIterable, Sendable {
        case key, json, cloudevents, debezium
    }

    /// What becomes of a record without a field that a template needs.
    package enum Missing: String, CaseIterable, Sendable {
        case deadLetter, skip
    }

    package var decode: Decode
    /// How keys were written; nil for plain bytes.
    package var keySchema: KeyFormat?
    /// The language of the schema that values were written with; nil for plain JSON.
    package var valueSchema: SchemaLanguage?
    /// How the subject is composed; nil takes the event's own subject, else the record's key.
    package var subject: SubjectTemplate?
    /// Further subjects of the same record.
    package var subjects: [SubjectTemplate] = []
    /// How the installation is composed that an event is for, instead of a subject.
    package var installation: SubjectTemplate?
    /// All must hold for a record to be an event.
    package var conditions: [RecordCondition] = []
    package var missing = Missing.deadLetter
    /// The changes of a row that are events; a connector's snapshot is none unless it is asked for.
    package var operations: Set<RowOperation> = [.create, .update, .delete]
    /// The field with the kinds, a string or an array of strings; nil takes `kinds`.
    package var kindsFrom: FieldPath?
    /// The field with the classes.
    package var classesFrom: FieldPath?
    package var push = PushBinding()
    /// The app of events that name none.
    package var app: String?
    /// The kinds of events that name none; empty means any kind.
    package var kinds: [String]
    package var classes: TokenClassSet
    /// The life of events that do not give their own.
    package var ttl: Duration?
    /// How long planning waits before it sends; see `Event.delay`.
    package var delay: Duration

    package init(
        decode: Decode, subject: SubjectTemplate? = nil, app: String? = nil, kinds: [String] = [],
        classes: TokenClassSet = .all, ttl: Duration? = nil, delay: Duration = .zero
    ) {
        self.decode = decode
        self.subject = subject
        self.app = app
        self.kinds = kinds
        self.classes = classes
        self.ttl = ttl
        self.delay = delay
    }

    /// The binding of `lamplighter.events` unless configured otherwise.
    package static let standard = TopicBinding(decode: .json)

    /// Whether the topic's records are events of ours, so that a worker may write shards to it.
    package var holdsOwnEvents: Bool { decode == .json && templates.isEmpty }

    /// The templates of all subjects, or of the installation.
    package var templates: [SubjectTemplate] {
        [installation, subject].compactMap(\.self) + subjects
    }

    package static let subjectsMax = 16

    /// The fields of the producer's own record that are read.
    var fields: [FieldPath] {
        templates.flatMap(\.fields) + conditions.map(\.field)
            + [kindsFrom, classesFrom].compactMap(\.self)
            + (push.payload?.fields ?? []) + (push.collapseID?.fields ?? [])
    }

    /// Whether fields of the record's value are read.
    var readsValue: Bool { fields.contains { $0.version != .key } }

    /// Whether an event needs a field of the current row.
    var needsRow: Bool {
        let needed =
            templates.flatMap(\.fields) + [kindsFrom, classesFrom].compactMap(\.self)
            + (push.payload?.fields ?? []) + (push.collapseID?.fields ?? [])
        return needed.contains { $0.version == .current }
    }

    /// The fields of which it matters that they are missing, each once.
    var fieldsThatMayBeMissing: [FieldPath] {
        let fields =
            conditions.filter(\.judgesValue).map(\.field)
            + [kindsFrom, classesFrom].compactMap(\.self)
            + (push.payload?.fieldsWithDefault ?? [])
        var known: Set<FieldPath> = []
        return fields.filter { known.insert($0).inserted }
    }

    /// Whether fields of the record's key are read.
    var readsKey: Bool { fields.contains { $0.version == .key } }

    /// Whether keys must be read: their fields, or those in a format of their own for `{key}`.
    var needsKey: Bool { readsKey || keySchema != nil && namesKey }

    var hasKeyConditions: Bool { conditions.contains { $0.field.version == .key } }

    /// Whether keys are text, so that a byte order mark before one is no part of it.
    var hasTextKeys: Bool { keySchema == nil || keySchema == .json }

    /// Whether `{key}` is part of a subject or a push.
    private var namesKey: Bool {
        (templates + [push.collapseID].compactMap(\.self)).contains { $0.parts.contains(.key) }
            || push.payload?.namesKey ?? false
    }

    /// Whether keys or values are in a format of their own.
    var hasFormat: Bool { keySchema != nil || valueSchema != nil }

    /// Whether a schema is needed to read the records.
    package var hasSchema: Bool { keySchema?.language != nil || valueSchema != nil }

    /// The binding for records whose keys and values are given as JSON.
    package var withoutSchemas: TopicBinding {
        var copy = self
        if copy.keySchema != .json { copy.keySchema = nil }
        copy.valueSchema = nil
        return copy
    }

    /// The binding with the subject that it leaves out: the key.
    var complete: TopicBinding {
        guard decode == .key, keySchema != nil, templates.isEmpty else { return self }
        var copy = self
        copy.subject = .key
        return copy
    }

    /// What is wrong with the constant parts of the payload, or with the classes that it is for.
    private var problemOfPayload: TopicBindingError? {
        // Classes that a field names are known with the record.
        let classes = classesFrom == nil ? classes : .all
        if let template = push.payload,
            let problem = template.problem(as: push.type, for: classes)
        {
            return .payload(problem)
        }
        if let type = push.certainType, classes.isDisjoint(with: type.classes) {
            return .classes(type)
        }
        return nil
    }

    private var readsChange: Bool {
        fields.contains(where: \.needsChange) || conditions.contains(where: \.needsChange)
    }

    /// What is wrong with the binding, so that the worker must not start; nil if nothing is.
    package func problem(in routing: RoutingTable) -> TopicBindingError? {
        if let app, routing.app(named: app) == nil { return .unknownApp(app) }
        return ownProblem
    }

    /// What is wrong with the binding, whatever apps there are.
    package var ownProblem: TopicBindingError? {
        if decode == .key, let template = templates.first(where: \.needsJSON) {
            return .pointerWithoutJSON(template.text)
        }
        if decode == .debezium, templates.isEmpty { return .noSubject }
        if installation != nil, templates.count > 1 { return .installationAndSubject }
        if templates.count > Self.subjectsMax { return .tooManySubjects(templates.count) }
        if let key = fieldsKey, holdsOwnEvents || decode == .key || decode == .cloudevents {
            return .noFields(key)
        }
        if readsChange, decode != .debezium { return .noChange }
        if hasFormat, holdsOwnEvents || decode == .cloudevents || complete.templates.isEmpty {
            return .noSubjectOfSchema
        }
        if valueSchema != nil, decode == .key { return .schemaOfUnreadValue }
        if let problem = push.problem { return .push(problem) }
        if let problem = problemOfPayload { return problem }
        let longest = Duration.seconds(RecordLimits.ttlSecondsMax)
        if let ttl, ttl <= .zero || ttl > longest { return .ttlOutOfRange(ttl) }
        if delay < .zero || delay > longest { return .delayOutOfRange(delay) }
        return nil
    }
}

/// How a binding makes pushes with a payload of a producer's records.
package struct PushBinding: Sendable, Equatable {
    /// Nil lets the payload tell it.
    package var type: PushType?
    package var payload: PushTemplate?
    package var collapseID: SubjectTemplate?
    /// `apns-priority`; nil takes the push type's own.
    package var priority: UInt8?

    package init() {}

    var isSet: Bool { self != PushBinding() }

    /// What no record could make good.
    fileprivate var problem: String? {
        guard isSet else { return nil }
        if let type, !type.row.carriesPayload, payload != nil {
            return "a push of type \(type.name) has no payload of its own: leave payload out"
        }
        if payload == nil, type.map({ $0.row.emptyBody == nil }) ?? true {
            return type.map { "a push of type \($0.name) needs a payload" }
                ?? "without a payload or a type it says nothing"
        }
        if let problem = certainType?.problem(ofPriority: priority) {
            return "priority: \(problem)"
        }
        return nil
    }

    /// The type of every push that it makes; nil where only the record tells it.
    fileprivate var certainType: PushType? { type ?? payload?.toldType }
}

extension TopicBinding {
    /// The first key that reads fields of the producer's record, if one is set.
    fileprivate var fieldsKey: String? {
        if !subjects.isEmpty, decode == .cloudevents { return "subjects" }
        if installation != nil, decode == .cloudevents { return "installation" }
        if !conditions.isEmpty { return "when" }
        if kindsFrom != nil { return "kindsFrom" }
        if classesFrom != nil { return "classesFrom" }
        return push.isSet ? "push" : nil
    }
}

package enum TopicBindingError: Error, Sendable, Equatable {
    case unknownApp(String)
    case pointerWithoutJSON(String)
    case ttlOutOfRange(Duration)
    case delayOutOfRange(Duration)
    case noSubject
    case tooManySubjects(Int)
    case installationAndSubject
    case noFields(String)
    case noChange
    case noSubjectOfSchema
    case schemaOfUnreadValue
    case push(String)
    case payload(PushTemplateError)
    /// The binding's classes leave out the one that its pushes go to.
    case classes(PushType)

    package var message: String {
        switch self {
        case .unknownApp(let app):
            "app: no credential serves \(app); add it to a credential's apps or correct it"
        case .pointerWithoutJSON(let template):
            "subject: \(template) reads JSON, but decode is key; say decode: json"
        case .ttlOutOfRange(let ttl):
            "ttl: \(ttl) is not within 0 s and 30 days, the longest that APNs keeps a push"
        case .delayOutOfRange(let delay): "delay: \(delay) is not within 0 s and 30 days"
        case .noSubject:
            "subject: a change of a row names none; write one of its fields, as in order-{/id}"
        case .tooManySubjects(let count):
            "subjects: \(count) are more than the \(TopicBinding.subjectsMax) of one record"
        case .installationAndSubject:
            "installation: the binding has a subject too, and an event names one of the two: leave the "
                + "other out"
        case .noFields(let key):
            "\(key): it is for records of the producer's own format, with decode: json and a subject "
                + "template, or decode: debezium"
        case .noChange:
            "before:, after: and changed are for rows that change; say decode: debezium"
        case .noSubjectOfSchema:
            "keySchema, valueSchema: they are for records of the producer's own format; say decode: json, "
                + "debezium or key, and write a subject, as in order-{/id}"
        case .schemaOfUnreadValue:
            "valueSchema: decode is key, which reads no value; say decode: json"
        case .push(let problem): "push: \(problem)"
        case .payload(let error): "push.payload: \(error.message)"
        case .classes(let type):
            "classes: \(type.tokenClass.name) is not among them, and a push of type \(type.name) goes "
                + "to no other class; add it, or leave classes out"
        }
    }
}
