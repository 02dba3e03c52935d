// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

extension Audience {
    /// Throws unless the tables that were read from a file agree with each other in everything, as
    /// `checkInvariants` demands it of an index that this process has made itself: a checksum that is
    /// right says only that the file is as it was written. Completes the tables.
    mutating func audit() throws(SnapshotFault) {
        var rows = RowAudit(
            tokens: tokens.records.emptyMap, subjects: subjects.records.emptyMap,
            kinds: kinds.apps.map { Array(repeating: 0, count: Int($0.fresh)) })
        let references = try tokens.audit(routes: routes.count, units: &rows.tokens)
        let entries = try subjects.audit(apps: kinds.apps.count, units: &rows.subjects)
        let blocks = try registrations.audit()
        // In the order of the arena: what was registered together lies together.
        var next = blocks.first(from: 1)
        while let block = next {
            try audit(block, &rows)
            next = blocks.first(from: block + 1)
        }
        try auditGathered(&rows)
        guard references == registrations.rows else {
            throw SnapshotFault("it has a token that counts its registrations wrongly")
        }
        guard entries == rows.listed else {
            throw SnapshotFault("it has a subject that lists more than is registered")
        }
        try kinds.audit(counted: rows.kinds)
    }

    /// Rows are gathered, so that the cache misses of many of them overlap.
    private struct RowAudit: ~Copyable {
        /// The units of the rows of tokens and of subjects.
        var tokens: BlockMap
        var subjects: BlockMap
        /// How many rows name each kind, by app and number.
        var kinds: [[UInt32]]
        /// How many rows are in the lists of subjects.
        var listed = 0
        var gathered: [UInt32] = []

        static let gatheredMax = 64

        init(tokens: consuming BlockMap, subjects: consuming BlockMap, kinds: [[UInt32]]) {
            self.tokens = tokens
            self.subjects = subjects
            self.kinds = kinds
        }
    }

    private mutating func audit(_ block: UInt32, _ rows: inout RowAudit) throws(SnapshotFault) {
        for offset in 0..<registrations.count(block) {
            let row = registrations.row(block, offset)
            guard registrations.isReadable(row: row),
                offset == 0
                    || Subscription.precedes(
                        registrations[registrations.row(block, offset - 1)], registrations[row])
            else { throw Self.fault }
            rows.gathered.append(row)
            if rows.gathered.count == RowAudit.gatheredMax { try auditGathered(&rows) }
        }
    }

    private mutating func auditGathered(_ rows: inout RowAudit) throws(SnapshotFault) {
        for row in rows.gathered {
            tokens.prefetch(registrations[row].token)
            subjects.prefetch(registrations[row].subject)
        }
        for row in rows.gathered {
            let subscription = registrations[row]
            if rows.subjects.begins(subscription.subject.rawValue) {
                subjects.prefetchEntry(subscription.subject, at: subscription.position)
            }
        }
        for row in rows.gathered { try audit(row: row, &rows) }
        rows.gathered.removeAll(keepingCapacity: true)
    }

    private mutating func audit(row: UInt32, _ rows: inout RowAudit) throws(SnapshotFault) {
        let subscription = registrations[row]
        guard rows.tokens.begins(subscription.token.rawValue),
            tokens.countDown(subscription.token)
        else { throw Self.fault }
        let app = app(of: subscription)
        if subscription.kind != .none {
            let number = Int(subscription.kind.rawValue)
            guard number < rows.kinds[Int(app.rawValue)].count else { throw Self.fault }
            rows.kinds[Int(app.rawValue)][number] += 1
        }
        let subject = subscription.subject
        guard subject != Subscription.noSubject else { return }
        guard rows.subjects.begins(subject.rawValue), subjects.app(of: subject) == app,
            subscription.position < subjects.count(subject),
            subjects.subscription(subject, at: Int(subscription.position)) == row
        else { throw Self.fault }
        rows.listed += 1
    }

    private static let fault = SnapshotFault("it has a registration whose row cannot be")
}
