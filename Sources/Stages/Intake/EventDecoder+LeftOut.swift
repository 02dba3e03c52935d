// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats
internal import Simdjson

/// Why a binding leaves a record out: a clause.
package struct LeftOutReason: Sendable, Equatable {
    /// What the binding wants. It is the same for all records that lack it, however they do.
    package let demand: String
    /// The type of what the record has instead, or its operation; nil where there is nothing to tell of it.
    let found: String?

    init(_ demand: String, found: String? = nil) {
        self.demand = demand
        self.found = found
    }

    package var text: String { demand + (found.map { ", and the record has \($0)" } ?? "") }
}

/// Why bindings leave records out, for people who ask. It is found by reading the record once more, so
/// that those that nobody asks about cost nothing for it.
extension EventDecoder {
    /// - Parameter record: one for which `decode` has returned nil.
    /// - Returns: a reason without anything of the record's content, but for the letters of an
    ///   operation that is none of Debezium's.
    package mutating func reasonLeftOut(
        _ record: EventRecord, now: WallTime, header: EventRecord.HeaderLookup
    ) -> LeftOutReason {
        let record = withoutByteOrderMark(record) ?? record
        guard let number = bindings[record.binding].fields else {
            return LeftOutReason("it is what lamplighter check leaves")
        }
        // What is remarkable about the record is counted already.
        let counted = notes[record.binding]
        defer { notes[record.binding] = counted }
        let fields = fieldBindings[number]
        do throws(UnreadableRecord) {
            if let refusal = try refusal(of: record, fields, number, header) { return refusal }
            composer.begin()
            _ = try event(of: record, fields, number, now, header)
            return LeftOutReason("it is an event now")
        } catch {
            let isSkipped = fields.missing == .skip && Self.isMissing(error)
            return LeftOutReason(error.message + (isSkipped ? " (missing: skip)" : ""))
        }
    }

    /// What a record must be for its fields to be asked for; nil if it is.
    private mutating func refusal(
        of record: EventRecord, _ fields: TopicBinding, _ number: Int,
        _ header: EventRecord.HeaderLookup
    ) throws(UnreadableRecord) -> LeftOutReason? {
        if fields.decode == .debezium, record.value.map(\.isEmpty) ?? true {
            return LeftOutReason("it is a tombstone")
        }
        let (record, key) = try plain(record, number: number, header)
        var document: RecordDocument?
        do throws(UnreadableRecord) {
            document = try self.document(of: record, fields)
        } catch {
            guard error.isLeftOut, let value = record.value else { throw error }
            let operation = RecordDocument.operation(of: try parser.object(value))
            let wanted = RowOperation.allCases.filter(fields.operations.contains).map(\.rawValue)
            return LeftOutReason(
                "operations has " + wanted.joined(separator: ", "),
                found: "operation \(operation)")
        }
        document?.key = try? key.get()
        guard let document else { return nil }
        return fields.conditions.lazy.compactMap { $0.refusal(in: document) }.first
    }
}
