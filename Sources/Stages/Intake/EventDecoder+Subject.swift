// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

extension EventDecoder {
    /// The subject of a record that cannot be read, such as of one that names no app: as far as it
    /// can be told, and empty where it cannot.
    package mutating func subject(
        ofUnreadable record: EventRecord, header: EventRecord.HeaderLookup
    ) -> [UInt8] {
        let record = withoutByteOrderMark(record) ?? record
        if bindings[record.binding].details.namesInstallation { return [] }
        if let template = bindings[record.binding].templates.first {
            composer.begin()
            if let number = bindings[record.binding].fields {
                return subject(ofUnreadable: record, template, number: number, header)
            }
            let document = template.needsJSON ? try? document(of: record) : nil
            let composed = try? composer.compose(template, from: record, document, header)
            return composed.map { Array($0) } ?? []
        }
        guard let subject = ownSubject(of: record, header),
            RecordLimits.subjectBytes.contains(subject.count)
        else { return [] }
        return Array(subject)
    }

    private mutating func subject(
        ofUnreadable record: EventRecord, _ template: SubjectTemplate, number: Int,
        _ header: EventRecord.HeaderLookup
    ) -> [UInt8] {
        guard let (record, found) = try? plain(record, number: number, header) else { return [] }
        if case .failure = found { return [] }
        let key = try? found.get()
        var document: RecordDocument?
        if fieldBindings[number].decode == .debezium {
            if let value = record.value, let object = try? parser.object(value) {
                document = try? RecordDocument.change(
                    object, in: value, of: Set(RowOperation.allCases), &rows)
            }
        } else if template.needsJSON {
            document = try? self.document(of: record)
        }
        if key != nil, document == nil { document = RecordDocument(nil) }
        document?.key = key
        let composed = try? composer.compose(template, from: record, document, header)
        return composed.map { Array($0) } ?? []
    }

    /// What the event names, else the key. A value that is no object may have named another.
    private mutating func ownSubject(
        of record: EventRecord, _ header: EventRecord.HeaderLookup
    ) -> UnsafeRawBufferPointer? {
        if bindings[record.binding].reading == .key { return record.key }
        if header(CloudEventAttribute.specversion.header) != nil {
            let isForInstallation = header(CloudEventAttribute.pushinstallation.header) != nil
            return header(CloudEventAttribute.subject.header)
                ?? (isForInstallation ? nil : record.key)
        }
        guard let value = record.value, value.count > 0 else { return record.key }
        guard let object = try? parser.object(value) else { return nil }
        guard let named = object["subject"], !named.isNull else {
            // Beside an installation the key names nothing.
            let isForInstallation = ["installation", "pushinstallation"].contains {
                object[$0].map { !$0.isNull } ?? false
            }
            return isForInstallation ? nil : record.key
        }
        return named.string
    }
}
