// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats
internal import Simdjson

/// Why bindings leave records out, for people who ask. It is found by reading the record once more, so
/// that those that nobody asks about cost nothing for it.
extension EventDecoder {
    /// - Parameter record: one for which `decode` has returned nil.
    /// - Returns: a clause without anything of the record's content.
    package mutating func reasonLeftOut(
        _ record: EventRecord, now: WallTime, header: EventRecord.HeaderLookup
    ) -> String {
        let record = withoutByteOrderMark(record)
        guard let number = bindings[record.binding].fields else {
            return ProbeRecord.hasKey(record.key)
                ? "it is what lamplighter check leaves" : "a field of its subject is missing"
        }
        do throws(UnreadableRecord) {
            return try reason(record, fieldBindings[number], number, now, header)
        } catch {
            return Self.isMissing(error) ? "\(error.message) (missing: skip)" : error.message
        }
    }

    private mutating func reason(
        _ record: EventRecord, _ fields: TopicBinding, _ number: Int, _ now: WallTime,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> String {
        if fields.decode == .debezium, record.value.map(\.isEmpty) ?? true {
            return "it is a tombstone"
        }
        let (record, key) = try plain(record, number: number, header)
        var document: RecordDocument?
        do throws(UnreadableRecord) {
            document = try self.document(of: record, fields)
        } catch {
            guard error.isLeftOut, let value = record.value else { throw error }
            let operation = RecordDocument.operation(of: try parser.object(value))
            let wanted = RowOperation.allCases.filter(fields.operations.contains).map(\.rawValue)
            return "its operation is \(operation), and operations has "
                + wanted.joined(separator: ", ")
        }
        if bindings[record.binding].details.hasKeyConditions { _ = try key.get() }
        document?.key = try? key.get()
        if let document {
            for condition in fields.conditions {
                if let refusal = condition.refusal(in: document) { return refusal }
            }
            if let absence = document.absence, fields.needsRow { throw absence }
        }
        _ = try key.get()
        let subject = try firstSubject(of: record, fields.templates, document, header)
        if let path = fields.kindsFrom { _ = try Self.kinds(document?[path], path) }
        if let path = fields.classesFrom { _ = try Self.classes(document?[path], path) }
        if fields.push.isSet {
            var event = try plainEvent(subject: subject, record, header, now)
            try fill(&event, fields, record, document, now, header)
        }
        return "a field is missing (missing: skip)"
    }

    private mutating func firstSubject(
        of record: EventRecord, _ templates: [SubjectTemplate], _ document: RecordDocument?,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> UnsafeRawBufferPointer {
        composer.begin()
        var failure: UnreadableRecord?
        for template in templates {
            do throws(UnreadableRecord) {
                return try composer.compose(template, from: record, document, header)
            } catch { failure = failure ?? error }
        }
        throw failure ?? UnreadableRecord(.missingSubject, "no subject can be made")
    }
}
