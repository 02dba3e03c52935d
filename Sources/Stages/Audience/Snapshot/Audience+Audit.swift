// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// Tables that were read from a file, each sound in itself, and what the audience's audit needs to
/// know of them.
struct IndexTables: ~Copyable {
    let tables: Tables
    /// The units of the rows of tokens and of subjects, and of the blocks of registrations.
    let units: Units
    /// How many rows of registrations name tokens, and how many entries the subjects' lists have.
    let references: Int
    let entries: Int

    struct Tables: ~Copyable {
        let tokens: TokenTable
        let subjects: SubjectTable
        let registrations: RegistrationTable
        let kinds: KindTable
    }

    struct Units: ~Copyable {
        var tokens: BlockMap
        var subjects: BlockMap
        var blocks: BlockMap
    }

    /// Reads the tables. One is audited while another is read or audited: of two cores each waits for
    /// memory of its own.
    init(
        _ outline: IndexOutline, seed: UInt64, routing: RoutingTable,
        furtherLists: FurtherLists, from source: consuming ChecksummedInput
    ) throws(SnapshotFault) {
        var input = source
        var tokens = TokenTable(seed: seed, routes: routing.routes.count)
        var subjects = SubjectTable(seed: seed)
        var registrations = RegistrationTable()
        var kinds = KindTable(apps: routing.apps.count, seed: seed)
        try tokens.restore(outline.tokens, from: &input)
        var tokenUnits = tokens.records.emptyMap
        var subjectUnits = subjects.records.emptyMap
        var blocks = registrations.blocks.emptyMap
        var named: Result<Int, SnapshotFault> = .success(0)
        var listed: Result<Int, SnapshotFault> = .success(0)
        TwoThreads.run {
            listed = Result { () throws(SnapshotFault) in
                try subjects.restore(outline.subjects, from: &input)
                try registrations.restore(outline.registrations, from: &input)
                try kinds.restore(outline.kinds, from: &input)
                subjectUnits = subjects.records.emptyMap
                blocks = registrations.blocks.emptyMap
                var entries: Result<Int, SnapshotFault> = .success(0)
                var rest: Result<Void, SnapshotFault> = .success(())
                TwoThreads.run {
                    entries = Result { () throws(SnapshotFault) in
                        try subjects.audit(
                            apps: routing.apps.count, furtherLists: furtherLists,
                            units: &subjectUnits)
                    }
                } _: {
                    rest = Result { () throws(SnapshotFault) in
                        try registrations.audit(units: &blocks)
                    }
                }
                try rest.get()
                return try entries.get()
            }
        } _: {
            named = Result { () throws(SnapshotFault) in
                try tokens.audit(routes: routing.routes.count, units: &tokenUnits)
            }
        }
        let (entryCount, referenceCount) = (try listed.get(), try named.get())
        entries = entryCount
        references = referenceCount
        tables = Tables(
            tokens: tokens, subjects: subjects, registrations: registrations, kinds: kinds)
        units = Units(tokens: tokenUnits, subjects: subjectUnits, blocks: blocks)
    }
}

extension Audience {
    /// Throws unless the tables agree with each other in everything, as `checkInvariants` demands it of
    /// an index that this process has made itself: a checksum that is right says only that the file is
    /// as it was written.
    static func audited(
        _ read: consuming IndexTables, routing: RoutingTable, hashSeed: UInt64,
        furtherLists: FurtherLists
    ) throws(SnapshotFault) -> Audience {
        let (references, entries) = (read.references, read.entries)
        let kinds = read.tables.kinds.apps.map { [UInt32](repeating: 0, count: Int($0.fresh)) }
        let units = read.units
        var audience = Audience(
            read.tables, routing: routing, hashSeed: hashSeed, furtherLists: furtherLists)
        // Each thread looks at the rows of its own tokens, which it counts down.
        let middle = UInt32(units.tokens.size / 2)
        let channels = routing.routes.map { $0.tokenClass == .channel }
        var lower = RowAudit(isUpper: false, middle: middle, kinds, channels: channels)
        var upper = RowAudit(isUpper: true, middle: middle, kinds, channels: channels)
        var lowerEnd: Result<Void, SnapshotFault> = .success(())
        var upperEnd: Result<Void, SnapshotFault> = .success(())
        TwoThreads.run {
            lowerEnd = Result { () throws(SnapshotFault) in try audience.audit(units, &lower) }
        } _: {
            upperEnd = Result { () throws(SnapshotFault) in try audience.audit(units, &upper) }
        }
        try lowerEnd.get()
        try upperEnd.get()
        guard references == audience.registrations.rows else {
            throw SnapshotFault("it has a token that counts its registrations wrongly")
        }
        guard entries == lower.listed + upper.listed else {
            throw SnapshotFault("it has a subject that lists more than is registered")
        }
        try audience.kinds.audit(counted: lower.kinds(with: upper))
        return audience
    }

    /// The rows that name tokens below or from the middle of their table, and what they say of others.
    private struct RowAudit {
        private let isUpper: Bool
        private let middle: UInt32
        /// Of each route, whether it is one of channels.
        let channels: [Bool]
        /// How many rows name each kind, by app and number.
        var kinds: [[UInt32]]
        /// How many rows are in the lists of subjects.
        var listed = 0
        /// Rows are gathered, so that the cache misses of many of them overlap.
        var gathered: [UInt32] = []

        static let gatheredMax = 64

        init(isUpper: Bool, middle: UInt32, _ kinds: [[UInt32]], channels: [Bool]) {
            self.channels = channels
            self.isUpper = isUpper
            self.middle = middle
            self.kinds = kinds
        }

        /// Of two audits with the same middle, one has the token, whatever the row says.
        func has(_ token: TokenID) -> Bool { (token.rawValue >= middle) == isUpper }

        /// The counts of both.
        func kinds(with other: RowAudit) -> [[UInt32]] {
            zip(kinds, other.kinds).map { zip($0, $1).map { $0 &+ $1 } }
        }
    }

    private func audit(
        _ units: borrowing IndexTables.Units, _ rows: inout RowAudit
    ) throws(SnapshotFault) {
        // In the order of the arena: what was registered together lies together.
        var next = units.blocks.first(from: 1)
        while let block = next {
            try audit(block, units, &rows)
            next = units.blocks.first(from: block + 1)
        }
        try auditGathered(units, &rows)
    }

    private func audit(
        _ block: UInt32, _ units: borrowing IndexTables.Units, _ rows: inout RowAudit
    ) throws(SnapshotFault) {
        for offset in 0..<registrations.count(block) {
            let row = registrations.row(block, offset)
            guard registrations.isReadable(row: row),
                offset == 0
                    || Subscription.precedes(
                        registrations[registrations.row(block, offset - 1)], registrations[row])
            else { throw Self.fault }
            guard rows.has(registrations[row].token) else { continue }
            rows.gathered.append(row)
            if rows.gathered.count == RowAudit.gatheredMax { try auditGathered(units, &rows) }
        }
    }

    private func auditGathered(
        _ units: borrowing IndexTables.Units, _ rows: inout RowAudit
    ) throws(SnapshotFault) {
        for row in rows.gathered {
            tokens.prefetch(registrations[row].token)
            subjects.prefetch(registrations[row].subject)
        }
        for row in rows.gathered {
            let subscription = registrations[row]
            if units.subjects.begins(subscription.subject.rawValue) {
                subjects.prefetchEntry(subscription.subject, at: subscription.position)
            }
        }
        for row in rows.gathered { try audit(row: row, units, &rows) }
        rows.gathered.removeAll(keepingCapacity: true)
    }

    private func audit(
        row: UInt32, _ units: borrowing IndexTables.Units, _ rows: inout RowAudit
    ) throws(SnapshotFault) {
        let subscription = registrations[row]
        guard units.tokens.begins(subscription.token.rawValue),
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
        guard units.subjects.begins(subject.rawValue), subjects.app(of: subject) == app,
            // A broadcast would reach other installations.
            subjects.scope(of: subject) != .installation
                || !rows.channels[Int(tokens.route(of: subscription.token).rawValue)],
            subscription.position < subjects.count(subject),
            subjects.subscription(subject, at: Int(subscription.position)) == row
        else { throw Self.fault }
        rows.listed += 1
    }

    private static let fault = SnapshotFault("it has a registration whose row cannot be")
}
