// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

extension EventDecoder.Binding {
    static func optionalFields(of binding: TopicBinding) -> [OptionalField] {
        guard binding.decode == .debezium else { return [] }
        return binding.fieldsThatMayBeMissing.map {
            OptionalField(path: $0, note: .unsentColumn($0))
        }
    }

    static func unknownChanges(of binding: TopicBinding) -> [RecordNote] {
        binding.conditions.filter(\.comparesRows).map { RecordNote.unknownChange($0.field) }
    }
}

/// Events of records in a producer's own format, of which a binding says what is read.
extension EventDecoder {
    /// The record's value as JSON, from which the binding's fields are read. Of a change, the whole
    /// envelope.
    mutating func document(of record: EventRecord) throws(UnreadableRecord) -> RecordDocument {
        guard let value = record.value, value.count > 0 else {
            throw UnreadableRecord(.missingSubject, "the subject template needs the record's value")
        }
        let found: JSONValue
        do throws(JSONError) {
            found = try parser.parse(value)
        } catch {
            throw UnreadableRecord(error, of: value, most: parser.bytesMax)
        }
        // Only what is missing is looked for in texts of JSON: most records have none.
        if found.object == nil || lacksDeepField(found, record.binding) {
            let missing = missingDeepFields(found, record.binding)
            if let expanded = rows.expanded(found, for: missing) { return RecordDocument(expanded) }
            guard found.object != nil else { throw Self.noObject(found) }
        }
        return RecordDocument(found)
    }

    static func noObject(_ value: JSONValue) -> UnreadableRecord {
        UnreadableRecord(
            .notAnObject, "the value must be a JSON object, and it is \(value.shape)")
    }

    /// - Throws: `leftOut` for a record that is no event: a tombstone, an operation that is not asked
    ///   for, a condition that does not hold, or a field that is missing where that is to be skipped.
    // Not inlined, since records without a template would pay for it.
    @inline(never)
    mutating func composedEvent(
        _ record: EventRecord, _ now: WallTime, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> Event {
        composer.begin()
        guard let number = bindings[record.binding].fields else {
            // The key and headers alone.
            return try event(ofSubjects: record, nil, now, header)
        }
        let fields = fieldBindings[number]
        do throws(UnreadableRecord) {
            return try event(of: record, fields, number, now, header)
        } catch {
            throw fields.missing == .skip && Self.isMissing(error) ? .leftOut : error
        }
    }

    /// - Throws: what is missing, also where that is to be skipped.
    @inline(__always)
    mutating func event(
        of record: EventRecord, _ fields: TopicBinding, _ number: Int, _ now: WallTime,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> Event {
        if fields.decode == .debezium, record.value.map(\.isEmpty) ?? true { throw .leftOut }
        let (record, key) = try plain(record, number: number, header)
        var document = try self.document(of: record, fields)
        if bindings[record.binding].details.hasKeyConditions { _ = try key.get() }
        document?.key = try? key.get()
        if let document {
            if let failed = fields.conditions.firstIndex(where: { !$0.holds(in: document) }) {
                note(failed, of: fields.conditions, in: document, record.binding)
                throw .leftOut
            }
            if document.isChange { noteUnsentColumns(document, record.binding) }
            if document.lacksBefore { noteUnknownChanges(record.binding) }
            if let absence = document.absence, fields.needsRow { throw absence }
        }
        _ = try key.get()
        var event = try event(ofSubjects: record, document, now, header)
        if let path = fields.kindsFrom {
            event.kinds = try Self.kinds(document?[path], path)
        }
        if let path = fields.classesFrom {
            event.classes = try Self.classes(document?[path], path)
        }
        if fields.push.isSet {
            try fill(&event, fields, record, document, now, header)
        }
        return event
    }

    /// What the fields of a binding are read from; nil where it reads none.
    /// - Parameter record: with what `plain` has made of it.
    /// - Throws: also `leftOut`.
    @inline(__always)
    mutating func document(
        of record: EventRecord, _ fields: TopicBinding
    ) throws(UnreadableRecord) -> RecordDocument? {
        if fields.decode == .debezium {
            guard let value = record.value,
                var document = try RecordDocument.change(
                    try parser.object(value), in: value, of: fields.operations, &rows)
            else { throw .leftOut }
            expand(&document, record.binding)
            return document
        }
        if fields.readsValue { return try document(of: record) }
        return fields.readsKey || fields.keySchema != nil ? RecordDocument(nil) : nil
    }

    /// A column of JSON is a text in a change.
    private mutating func expand(_ document: inout RecordDocument, _ binding: Int) {
        guard let row = document.current, lacksDeepField(row, binding),
            let expanded = rows.expanded(row, for: missingDeepFields(row, binding))
        else { return }
        document.current = expanded
    }

    private func lacksDeepField(_ value: JSONValue, _ binding: Int) -> Bool {
        bindings[binding].details.deepFields.contains { value[$0.pointer] == nil }
    }

    private func missingDeepFields(_ value: JSONValue, _ binding: Int) -> [JSONPointer] {
        bindings[binding].details.deepFields.map(\.pointer).filter { value[$0] == nil }
    }

    /// What is remarkable about a condition that does not hold.
    private mutating func note(
        _ number: Int, of conditions: [RecordCondition], in document: RecordDocument, _ binding: Int
    ) {
        let failed = conditions[number]
        if let shape = failed.mismatch(in: document) {
            notes[binding].add(.conditionType(failed.field, met: shape))
        } else if document[failed.field] == nil, !document.isUnsent(failed.field) {
            notes[binding].addAbsence(ofCondition: number, on: failed.field)
        }
        guard failed.judgesValue, document.isUnsent(failed.field) else { return }
        for field in bindings[binding].details.optionalFields where field.path == failed.field {
            notes[binding].add(field.note)
        }
    }

    private mutating func noteUnknownChanges(_ binding: Int) {
        for note in bindings[binding].details.unknownChanges { notes[binding].add(note) }
    }

    /// Of a record that is let through; of one that is not, the condition that fails decides alone.
    private mutating func noteUnsentColumns(_ document: RecordDocument, _ binding: Int) {
        for field in bindings[binding].details.optionalFields where document.isUnsent(field.path) {
            notes[binding].add(field.note)
        }
    }

    static func isMissing(_ error: UnreadableRecord) -> Bool {
        [UnreadableCode.missingField, .missingSubject].contains { $0.rawValue == error.code }
    }

    /// The event with the subjects that can be composed.
    private mutating func event(
        ofSubjects record: EventRecord, _ document: RecordDocument?, _ now: WallTime,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> Event {
        let templates = bindings[record.binding].templates
        let skips =
            bindings[record.binding].fields.map { fieldBindings[$0].missing == .skip } ?? false
        var event: Event?
        var missing: UnreadableRecord?
        for template in templates {
            do throws(UnreadableRecord) {
                let subject = try composer.compose(template, from: record, document, header)
                if event == nil {
                    event = try plainEvent(subject: subject, record, header, now)
                } else if !event!.hasSubject(subject) {
                    if composer.subjects.isEmpty { composer.add(event!.subject) }
                    composer.add(subject)
                    event!.allSubjects = composer.subjects
                }
            } catch {
                guard skips, Self.isMissing(error) else { throw error }
                missing = missing ?? error
            }
        }
        guard var event else { throw missing ?? .leftOut }
        if bindings[record.binding].details.namesInstallation { try nameInstallation(of: &event) }
        return event
    }

    /// What the template has made is the installation that the event is for.
    // Not inlined: hardly any binding names one.
    @inline(never)
    private func nameInstallation(of event: inout Event) throws(UnreadableRecord) {
        guard RecordKey.isPart(event.subject) else {
            throw .field("installation", RecordKey.partDemand)
        }
        try requireInstallations()
        event.scope = .installation
    }

    private static func kinds(
        _ value: JSONValue?, _ path: FieldPath
    ) throws(UnreadableRecord) -> [String] {
        var kinds: [String] = []
        for word in try words(value, path) {
            guard RecordLimits.kindBytes.contains(word.count), kinds.count < RecordLimits.kindsMax
            else {
                throw .field(
                    path.text,
                    "1 to \(RecordLimits.kindsMax) kinds of 1 to \(RecordLimits.kindBytesMax) bytes"
                )
            }
            kinds.append(String(decoding: word, as: UTF8.self))
        }
        return kinds
    }

    private static func classes(
        _ value: JSONValue?, _ path: FieldPath
    ) throws(UnreadableRecord) -> TokenClassSet {
        var classes: TokenClassSet = []
        for word in try words(value, path) { classes.formUnion(try EventFields.tokenClass(word)) }
        return classes
    }

    /// A string, or an array of one string or more.
    private static func words(
        _ value: JSONValue?, _ path: FieldPath
    ) throws(UnreadableRecord) -> [UnsafeRawBufferPointer] {
        guard let value else { throw .missing(path.text, "the binding reads it") }
        if let word = value.string { return [word] }
        let words = value.array.map { $0.map(\.string) } ?? []
        guard !words.isEmpty, !words.contains(where: { $0 == nil }) else {
            throw .field(path.text, "a string or an array of strings")
        }
        return words.compactMap(\.self)
    }

    // MARK: Pushes

    private mutating func fill(
        _ event: inout Event, _ fields: TopicBinding, _ record: EventRecord,
        _ document: RecordDocument?, _ now: WallTime, _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) {
        let push = fields.push
        let values = TemplateValues(
            record: record, document: document,
            headers: (push.payload?.headers ?? []).reduce(into: [:]) { $0[$1] = header($1) },
            time: event.time)
        var type = push.type
        if let template = push.payload {
            let payload = try payload(
                template, values, as: push.type, at: Self.moment(of: record, now))
            type = payload.type
            event.payload = payload
        } else if let type, type.row.carriesPayload, let body = type.row.emptyBody {
            event.payload = EventPayload(body: Array(body.utf8), type: type)
        }
        if let type {
            try Self.narrow(
                &event.classes, to: type, payloadBytes: event.payload?.body.count)
        }
        event.priority = push.priority
        if let problem = type?.problem(ofPriority: push.priority) {
            throw UnreadableRecord(.invalidPriority, problem)
        }
        if let template = push.collapseID {
            let text = try composer.compose(template, from: record, document, header)
            event.collapseID = try EventFields.collapseID(text)
        }
        if event.payload != nil {
            event.expiresAt = min(
                event.time + bindings[record.binding].payloadLife, Self.latest(from: now))
        }
    }

    private mutating func payload(
        _ template: PushTemplate, _ values: TemplateValues, as type: PushType?,
        at moment: RecordMoment
    ) throws(UnreadableRecord) -> EventPayload {
        filled.removeAll(keepingCapacity: true)
        try template.fill(&filled, from: values)
        return try EventPayload(filled, as: type, at: moment, &payloads)
    }
}
