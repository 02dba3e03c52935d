// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel
internal import RecordFormats
package import SchemaCodecs
internal import Simdjson

/// Reads records of events topics. One per planner thread; its buffers are reused.
///
/// A record whose value is not looked at costs no allocation, no header look-up and no JSON
/// parsing.
package struct EventDecoder: ~Copyable {
    let bindings: [Binding]
    /// Apart from `bindings`, which are copied for each event.
    let fieldBindings: [TopicBinding]
    let settings: EventSettings
    private let routes: RouteDirectory
    var parser: JSONParser
    var composer = SubjectComposer()
    /// Reads the payloads that templates make.
    var payloads = JSONParser(bytesMax: 1 << 17)
    /// The payload that a template has made last.
    var filled: [UInt8] = []
    /// Reads keys and values that were written with a schema.
    var schemas: RecordDecoder
    package let lookup: SchemaLookup
    /// Reads keys of which fields are read.
    var keyParser = JSONParser(bytesMax: 1 << 17)
    /// Reads rows and members that are texts of JSON.
    var rows: RowReader
    /// What was remarkable about the records of each topic.
    package internal(set) var notes: [RecordNotes]
    /// The last key that is a number.
    var keyDigits = FixedBytes(capacity: RecordLimits.subjectBytesMax)
    private let byAddress = PassedByAddress()

    /// A topic's binding with what can be known before the first record.
    struct Binding {
        /// A field of which it matters that it is missing, with what is noted then: no text is made
        /// for a record.
        struct OptionalField {
            let path: FieldPath
            let note: RecordNote
        }

        /// What few records need: one reference, since a binding is copied for each.
        final class Details: Sendable {
            /// The fields of the value that are inside of a member, which may be a text of JSON.
            let deepFields: [FieldPath]
            /// Those of which a row that lacks them is noted.
            let optionalFields: [OptionalField]
            /// What is noted of an update whose row before is not known.
            let unknownChanges: [RecordNote]
            let hasTextKeys: Bool
            /// See `TopicBinding.needsKey`.
            let needsKey: Bool
            let hasKeyConditions: Bool
            /// Whether the template is that of an installation.
            let namesInstallation: Bool

            init(_ binding: TopicBinding) {
                deepFields = binding.fields.filter {
                    $0.version == .current && $0.pointer.steps.count > 1
                }
                optionalFields = Binding.optionalFields(of: binding)
                unknownChanges = Binding.unknownChanges(of: binding)
                hasTextKeys = binding.hasTextKeys
                needsKey = binding.needsKey
                hasKeyConditions = binding.hasKeyConditions
                namesInstallation = binding.installation != nil
            }
        }

        enum Reading {
            case key
            /// The producer's document, of which only what the template names is read.
            case template
            case event
            case cloudEvent
        }

        let reading: Reading
        let templates: [SubjectTemplate]
        /// The position in `fieldBindings` of what only fields, conditions and pushes need; nil where
        /// there are none of these.
        let fields: Int?
        let details: Details
        let app: AppID?
        let kinds: [String]
        let classes: TokenClassSet
        let delay: Duration
        let changeLife: Milliseconds
        let payloadLife: Milliseconds
        /// Whether the binding filters nothing.
        let isPlain: Bool
    }

    /// - Parameter schemas: tells what is known of a schema; needed where a binding has some.
    package init(
        bindings: [TopicBinding], routing: RoutingTable, settings: EventSettings,
        schemas: SchemaLookup? = nil
    ) throws(TopicBindingError) {
        for binding in bindings {
            if let problem = binding.problem(in: routing) { throw problem }
        }
        let bindings = bindings.map(\.complete)
        let fieldBindings = bindings.filter {
            !$0.fields.isEmpty || $0.decode == .debezium || $0.hasFormat || $0.push.isSet
        }
        let routes = RouteDirectory(routing)
        self.bindings = bindings.map { binding in
            Binding(
                reading: Self.reading(of: binding), templates: binding.templates,
                fields: fieldBindings.firstIndex(of: binding),
                details: Binding.Details(binding),
                app: binding.app.flatMap { routing.app(named: $0) } ?? routes.soleApp,
                kinds: binding.kinds, classes: binding.classes, delay: binding.delay,
                changeLife: Milliseconds(binding.ttl ?? settings.changeTTL),
                payloadLife: Milliseconds(binding.ttl ?? settings.payloadTTL),
                isPlain: binding.kinds.isEmpty && binding.classes == .all
                    && binding.kindsFrom == nil && binding.classesFrom == nil
                    && !binding.push.isSet)
        }
        self.fieldBindings = fieldBindings
        self.routes = routes
        self.settings = settings
        parser = JSONParser(bytesMax: settings.recordBytesMax)
        rows = RowReader(bytesMax: settings.recordBytesMax)
        notes = Array(repeating: RecordNotes(), count: bindings.count)
        lookup = schemas ?? { _ in .unusable("kafka.schemaRegistry is not set") }
        self.schemas = Self.recordDecoder(fieldBindings, settings)
    }

    private static func recordDecoder(
        _ bindings: [TopicBinding], _ settings: EventSettings
    ) -> RecordDecoder {
        var limits = SchemaLimits()
        limits.outputBytesMax = settings.recordBytesMax
        return RecordDecoder(projections: projections(of: bindings), limits: limits)
    }

    /// A decoder that reads as `other` does, with buffers of its own. What was known before the first
    /// record is shared, and not worked out again.
    package init(like other: borrowing EventDecoder) {
        bindings = other.bindings
        fieldBindings = other.fieldBindings
        settings = other.settings
        routes = other.routes
        lookup = other.lookup
        parser = JSONParser(bytesMax: settings.recordBytesMax)
        rows = RowReader(bytesMax: settings.recordBytesMax)
        notes = Array(repeating: RecordNotes(), count: bindings.count)
        schemas = Self.recordDecoder(fieldBindings, settings)
    }

    /// The app of a binding's records where the key is the subject and the binding names the app;
    /// otherwise nil.
    package func appOfKeys(_ binding: Int) -> AppID? {
        switch bindings[binding].reading {
        case .key, .event: bindings[binding].app
        case .template, .cloudEvent: nil
        }
    }

    private static func reading(of binding: TopicBinding) -> Binding.Reading {
        switch binding.decode {
        case .cloudevents: .cloudEvent
        case .json where binding.holdsOwnEvents: .event
        case .debezium: .template
        case .json, .key:
            !binding.fields.isEmpty || binding.hasFormat || binding.push.isSet
                || binding.templates.contains { !$0.isKey }
                || binding.templates.count > 1 || binding.installation != nil
                ? .template : .key
        }
    }

    /// Reads one record. The event's subject points into the record or into this decoder, and is
    /// valid until the next call.
    ///
    /// - Parameters:
    ///   - now: stands in for a missing timestamp, and bounds every deadline to 30 days from then.
    ///   - header: called only for a CloudEvent, for an event of ours with a value, for a template
    ///     that names a header, and where `readsTraceparent` is set.
    /// - Returns: nil for a record that its binding leaves out.
    /// - Throws: what the record's dead letter says.
    package mutating func decode(
        _ record: EventRecord, now: WallTime, header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> Event? {
        do throws(UnreadableRecord) {
            return try event(of: record, now: now, header: header)
        } catch {
            if error.isLeftOut { return nil }
            throw error
        }
    }

    /// As `decode`, for where each copy of an event counts.
    /// - Throws: also `UnreadableRecord.leftOut`.
    package mutating func event(
        of record: EventRecord, now: WallTime, header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> Event {
        if let record = withoutByteOrderMark(record) {
            return try event(of: record, now: now, header: header)
        }
        let index = record.binding
        switch bindings[index].reading {
        case .key:
            return try plainEvent(
                subject: SubjectComposer.subject(inKeyOf: record), record, header, now)
        case .template:
            return try composedEvent(record, now, header)
        case .event:
            guard let value = record.value, value.count > 0 else {
                if record.value == nil, ProbeRecord.hasKey(record.key) {
                    throw UnreadableRecord.leftOut
                }
                return try plainEvent(
                    subject: SubjectComposer.subject(inKeyOf: record), record, header, now)
            }
            let fields = try ownFields(value, record, header, now)
            if let remark = fields.remark { note(remark, of: record) }
            return try event(fields, record, now)
        case .cloudEvent:
            let fields = try cloudEventFields(record, header)
            if let remark = fields.remark { note(remark, of: record) }
            return try event(fields, record, now)
        }
    }

    /// The record without the marks that some programs write before a text, where its key is text and has
    /// one. Hardly any has, so the first byte is looked at before all else.
    @inline(__always)
    func withoutByteOrderMark(_ record: EventRecord) -> EventRecord? {
        guard let key = record.key, key.count > 0, key[0] == 0xEF else { return nil }
        return withoutMark(record, key)
    }

    @inline(never)
    private func withoutMark(
        _ record: EventRecord, _ key: UnsafeRawBufferPointer
    ) -> EventRecord? {
        // Of several none is left, or `event` would go one deeper for each.
        var rest = key
        while rest.withoutByteOrderMark.count < rest.count { rest = rest.withoutByteOrderMark }
        guard rest.count < key.count, bindings[record.binding].details.hasTextKeys else {
            return nil
        }
        var record = record
        record.key = rest
        return record
    }

    @inline(never)
    private mutating func note(_ remark: EventFields.Remark, of record: EventRecord) {
        let binding = record.binding
        switch remark {
        case .timeAttribute: notes[binding].add(.attribute("time"))
        case .subjectAttribute: notes[binding].add(.attribute("subject"))
        case .aps, .message, .notification: notes[binding].add(.strayPush(remark.rawValue))
        }
    }

    // MARK: Formats

    private mutating func ownFields(
        _ value: UnsafeRawBufferPointer, _ record: EventRecord,
        _ header: EventRecord.HeaderLookup, _ now: WallTime
    ) throws(UnreadableRecord) -> EventFields {
        if header(CloudEventAttribute.specversion.header) != nil {
            return try EventFields(binary: header)
        }
        let object = try parser.object(value)
        guard object["specversion"] == nil else {
            return try EventFields(structured: object, header: header)
        }
        var fields = try EventFields(json: object, at: Self.moment(of: record, now))
        fields.traceparent = header(EventRecord.traceparentHeader)
        return fields
    }

    private mutating func cloudEventFields(
        _ record: EventRecord, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> EventFields {
        guard let template = bindings[record.binding].templates.first else {
            return try attributes(record, header)
        }
        // The subject comes first, since the fields point into what the parser parsed last.
        let document = template.needsJSON ? try document(of: record) : nil
        composer.begin()
        let subject = try composer.compose(template, from: record, document, header)
        var fields = try attributes(record, header)
        fields.subject = subject
        return fields
    }

    /// The names under which producers write the type of a value.
    private static let contentTypes = ["content-type", "Content-Type", "contentType"]

    private static func structuredFormat(
        _ header: EventRecord.HeaderLookup
    ) -> UnsafeRawBufferPointer? {
        for name in contentTypes {
            guard let type = header(name) else { continue }
            if let format = CloudEventAttribute.structuredFormat(of: type) { return format }
        }
        return nil
    }

    /// The header `content-type` decides between the modes, as CloudEvents' Kafka binding has it.
    /// Without one a value that is an envelope is one: Dapr and others write no headers.
    private mutating func attributes(
        _ record: EventRecord, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> EventFields {
        if let format = Self.structuredFormat(header) {
            guard format.equalsIgnoringCase("json") else {
                throw UnreadableRecord(
                    .notCloudEvent, "of the structured formats only application/cloudevents+json")
            }
            guard let value = record.value, value.count > 0 else {
                throw UnreadableRecord(.emptyValue, "a structured CloudEvent has no value")
            }
            return try EventFields(structured: try parser.object(value), header: header)
        }
        if header(CloudEventAttribute.specversion.header) != nil {
            return try EventFields(binary: header)
        }
        guard let value = record.value, value.count > 0, let object = try? parser.object(value),
            object["specversion"] != nil
        else {
            if record.value?.first == UInt8(ascii: "[") {
                throw UnreadableRecord(
                    .notCloudEvent,
                    "the value is a batch of events: write each as a record of its own")
            }
            throw UnreadableRecord(
                .notCloudEvent,
                "neither a ce_specversion header nor content-type application/cloudevents+json, and "
                    + "the value is no envelope with specversion")
        }
        return try EventFields(structured: object, header: header)
    }

    /// What identifies the event of a record that cannot be read, as far as it can be told.
    package mutating func correlation(
        of record: EventRecord, header: EventRecord.HeaderLookup
    ) -> Correlation {
        let headers = [EventRecord.traceparentHeader, "ce_" + EventRecord.traceparentHeader]
        var traceparent = headers.lazy.compactMap(header).first
        var id = header(CloudEventAttribute.id.header)
        let reading = bindings[record.binding].reading
        // Whatever made the event unreadable, its value may be an object.
        if reading == .event || reading == .cloudEvent, let value = record.value,
            let object = try? parser.object(value)
        {
            id = id ?? object["id"]?.string
            if object["specversion"] != nil {
                traceparent = traceparent ?? object["traceparent"]?.string
            }
        }
        return Correlation(checking: id, traceparent: traceparent)
    }

    // MARK: Events

    /// The record's timestamp, or `now` where that is none. It is never so far ahead that a life
    /// added to it would overflow.
    static func recordTime(_ record: EventRecord, _ now: WallTime) -> WallTime {
        RecordMoment.isTimestamp(record.timestamp)
            ? min(record.timestamp, latest(from: now)) : now
    }

    static func moment(of record: EventRecord, _ now: WallTime) -> RecordMoment {
        RecordMoment(written: recordTime(record, now), read: now)
    }

    func plainEvent(
        subject: UnsafeRawBufferPointer, _ record: EventRecord,
        _ header: EventRecord.HeaderLookup, _ now: WallTime
    ) throws(UnreadableRecord) -> Event {
        guard let app = bindings[record.binding].app else { throw Self.missingApp }
        assert(
            RecordLimits.subjectBytes.contains(subject.count),
            "a subject has a length that a registration may have")
        let time = Self.recordTime(record, now)
        let deadline = min(time + bindings[record.binding].changeLife, Self.latest(from: now))
        var event = Event(
            app: app, subject: subject, time: time, expiresAt: deadline,
            kinds: bindings[record.binding].kinds, classes: bindings[record.binding].classes,
            delay: bindings[record.binding].delay, isPlain: bindings[record.binding].isPlain)
        if settings.readsTraceparent { event.traceparent = header(EventRecord.traceparentHeader) }
        return event
    }

    /// The app that the event itself names; nil if it names none. A refusal has its name: each becomes
    /// a dead letter, whereas a start may refuse millions of registrations, whose messages are literals.
    private func namedApp(of fields: EventFields) throws(UnreadableRecord) -> AppID? {
        guard let name = fields.app else { return nil }
        do throws(UnreadableRecord) {
            let app = try routes.app(named: name)
            if let environment = fields.environment { try routes.requireServed(app, environment) }
            return app
        } catch {
            let text = String(decoding: name.prefix(128), as: UTF8.self).printable
            throw UnreadableRecord(
                code: error.code,
                message: error.message.replacing("this app", with: "app '\(text)'"))
        }
    }

    private mutating func event(
        _ fields: EventFields, _ record: EventRecord, _ now: WallTime
    ) throws(UnreadableRecord) -> Event {
        // Not copied: that would count the references of all its parts.
        let binding = record.binding
        let named = try namedApp(of: fields)
        guard let app = named ?? bindings[binding].app else { throw Self.missingApp }
        if named == nil, let environment = fields.environment {
            try routes.requireServed(app, environment)
        }
        let subject = try subject(of: fields, record)

        let recorded = Self.recordTime(record, now)
        var time = fields.time ?? recorded
        // It would lengthen the life of the event's pushes. A record may be older than its event:
        // some producers copy the timestamp of another one.
        if RecordMoment.isFar(time, after: max(recorded, now), .ofEvent) {
            notes[binding].add(.timeAhead)
            time = recorded
        }
        let standard =
            fields.payload == nil ? bindings[binding].changeLife : bindings[binding].payloadLife
        let life = fields.ttl.map { Milliseconds($0) } ?? standard
        let deadline = fields.expiresAt ?? max(time, recorded) + life

        // A shard says all that its event and that event's binding said, so this binding adds
        // nothing.
        let isWhole = fields.shard == nil
        if !isWhole, settings.leavesShards { throw .leftOut }
        var event = Event(
            app: app, subject: subject, time: time,
            expiresAt: min(deadline, Self.latest(from: now)),
            kinds: fields.kinds ?? (isWhole ? bindings[binding].kinds : []),
            classes: fields.classes ?? (isWhole ? bindings[binding].classes : .all),
            delay: isWhole ? bindings[binding].delay : .zero)
        if fields.installation != nil { event.scope = .installation }
        // A shard is written some time after its event, whose `time` may be of any age.
        event.writtenAt =
            isWhole ? recorded : min(fields.shard?.writtenAt ?? WallTime(milliseconds: 0), recorded)
        if let type = fields.payload?.type ?? fields.pushType {
            try Self.narrow(&event.classes, to: type, payloadBytes: fields.payload?.body.count)
        }
        if fields.all {
            guard subject.isEmpty else {
                throw UnreadableRecord(
                    .invalidSubject, "all is for every control: leave out the subject and the key")
            }
            guard fields.kinds == nil else { throw .field("all", "left out beside kinds") }
            event.isAppWide = true
        }
        event.environment = fields.environment
        event.shard = fields.shard
        event.priority = fields.priority
        event.collapseID = fields.collapseID
        event.expiration = fields.expiration
        event.payload = fields.payload
        event.id = fields.id
        event.traceparent = fields.traceparent
        event.isPlain = fields.isPlain && isWhole && bindings[binding].isPlain
        assert(Self.isInBounds(event), "a decoded event keeps the bounds of its format")
        return event
    }

    /// A push of this type is for tokens of its own classes alone.
    static func narrow(
        _ classes: inout TokenClassSet, to type: PushType, payloadBytes: Int?
    ) throws(UnreadableRecord) {
        guard !classes.isDisjoint(with: type.classes) else {
            throw UnreadableRecord(
                .invalidField,
                "classes, of the event or of its topic's binding, must have \(type.tokenClass.name): "
                    + "a push of type \(type.name) goes to no other class")
        }
        if !type.row.carriesPayload { classes = TokenClassSet(type.tokenClass) }
        if let payloadBytes, payloadBytes > type.row.bodyBytesMax,
            classes.contains(type.tokenClass)
        {
            throw UnreadableRecord(
                .payloadTooLarge,
                "payload is over \(type.row.bodyBytesMax) bytes, the most that APNs takes for a token; "
                    + "up to \(type.payloadBytesMax) bytes go to channels, if classes name "
                    + "\(TokenClass.channel.name) alone")
        }
    }

    /// What every way of decoding promises to those who plan and send.
    private static func isInBounds(_ event: Event) -> Bool {
        event.subject.count <= RecordLimits.subjectBytesMax
            && (event.subject.count > 0 || !event.kinds.isEmpty || event.isAppWide)
            && event.priority.map { $0 == 1 || $0 == 5 || $0 == 10 } ?? true
            && event.collapseID.map { RecordLimits.collapseIDBytes.contains($0.utf8.count) } ?? true
            && event.payload.map { $0.body.count <= $0.type.payloadBytesMax } ?? true
    }

    /// The event's own subject or installation, else the key; empty for an event that means every
    /// control of its kinds.
    private func subject(
        of fields: EventFields, _ record: EventRecord
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        if let installation = fields.installation {
            return try allowed(installation, of: fields)
        }
        if let subject = fields.subject { return subject }
        let hasKey = record.key.map { $0.count > 0 } ?? false
        guard !hasKey, fields.kinds != nil || fields.all else {
            return try SubjectComposer.subject(inKeyOf: record)
        }
        guard settings.allowKindWide else {
            throw UnreadableRecord(
                .kindWideRefused,
                "an event with kinds or all, and no subject, reaches every control and widget of those "
                    + "kinds: set intake.allowKindWide if that is meant")
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    // Not inlined: hardly any event is for an installation.
    @inline(never)
    private func allowed(
        _ installation: UnsafeRawBufferPointer, of fields: EventFields
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        guard fields.subject == nil, !fields.all else {
            throw UnreadableRecord(
                .invalidSubject,
                "the event names an installation and also \(fields.all ? "all" : "a subject"), which "
                    + "would reach others: leave out one of the two")
        }
        try requireInstallations()
        return installation
    }

    func requireInstallations() throws(UnreadableRecord) {
        guard settings.allowInstallations else {
            throw UnreadableRecord(
                .installationRefused,
                "the event names an installation, and no lists of those are kept: set "
                    + "intake.allowInstallations on all workers, or name a subject that it shows")
        }
    }

    /// The latest expiry that counts: however wrong a producer's clock is, nothing waits longer
    /// than APNs would keep it.
    static func latest(from now: WallTime) -> WallTime {
        now + Milliseconds(count: RecordLimits.ttlSecondsMax * 1000)
    }

    private static var missingApp: UnreadableRecord {
        UnreadableRecord(
            .missingApp, "several apps are configured: name one in the event or in the binding")
    }
}
