// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What a replica remembers of the registrations in one partition: enough to refuse a stale write,
/// to name an installation's handlers and to find a record again, and no token. Some 90 bytes for
/// each record (docs/registrar.md has the figures).
struct RegistrationTable {
    struct Row: Equatable {
        var handler: HandlerNameTable.ID
        var standing: RecordStanding
        var summary: RegistrationSummary
    }

    /// Compact, since there are millions.
    private struct Slot {
        var sequence: Int64
        var offset: Int64
        var content: UInt64
        /// Of its `Ownership`; -1 for none.
        var since: Int64
        var seconds: UInt32
        var handler: HandlerNameTable.ID
        /// The next row of the installation, or the next free one.
        var next: UInt32
        /// The position in `RegistrationClass.allCases` plus one; 0 for none.
        var tokenClass: UInt8
        /// Whether the client gave the sequence.
        var isOrdered: Bool
    }

    private static let noSequence = Int64.min
    private static let none = UInt32.max

    private var slots: [Slot] = []
    private var first: [StableHash.Value: UInt32] = [:]
    private var free = none

    var count: Int { slots.count - freeCount }
    private var freeCount = 0

    /// The bytes that are reserved.
    var bytes: Int {
        slots.capacity * MemoryLayout<Slot>.stride
            + first.capacity * (MemoryLayout<StableHash.Value>.stride + MemoryLayout<UInt32>.stride)
            * 4 / 3
    }

    func row(_ installation: StableHash.Value, _ handler: HandlerNameTable.ID) -> Row? {
        find(installation, handler).map { row(at: $0.index) }
    }

    func rows(_ installation: StableHash.Value) -> [Row] {
        var rows: [Row] = []
        var index = first[installation] ?? Self.none
        while index != Self.none {
            rows.append(row(at: index))
            index = slots[Int(index)].next
        }
        return rows
    }

    /// Sets the row of this installation and handler.
    /// - Returns: whether there was none before.
    mutating func set(_ row: Row, of installation: StableHash.Value) -> Bool {
        var slot = Slot(
            sequence: row.summary.sequence ?? Self.noSequence, offset: row.standing.offset,
            content: row.summary.content, since: row.standing.owner?.since ?? -1,
            seconds: row.standing.owner?.seconds ?? 0, handler: row.handler, next: Self.none,
            tokenClass: Self.code(of: row.summary.tokenClass),
            isOrdered: row.standing.order != .none)
        if let found = find(installation, row.handler) {
            slot.next = slots[Int(found.index)].next
            slots[Int(found.index)] = slot
            return false
        }
        slot.next = first[installation] ?? Self.none
        if free == Self.none {
            precondition(
                slots.count < Int(Self.none),
                "there are fewer rows than there are numbers for them")
            first[installation] = UInt32(slots.count)
            slots.append(slot)
        } else {
            let index = free
            free = slots[Int(index)].next
            freeCount -= 1
            slots[Int(index)] = slot
            first[installation] = index
        }
        return true
    }

    /// - Returns: whether there was such a row.
    mutating func remove(_ installation: StableHash.Value, _ handler: HandlerNameTable.ID) -> Bool {
        guard let found = find(installation, handler) else { return false }
        let next = slots[Int(found.index)].next
        if let before = found.before {
            slots[Int(before)].next = next
        } else if next == Self.none {
            first[installation] = nil
        } else {
            first[installation] = next
        }
        slots[Int(found.index)].next = free
        free = found.index
        freeCount += 1
        return true
    }

    /// The handlers of all rows, to be released before the table is dropped.
    func forEachHandler(_ body: (HandlerNameTable.ID) -> Void) {
        for start in first.values {
            var index = start
            while index != Self.none {
                body(slots[Int(index)].handler)
                index = slots[Int(index)].next
            }
        }
    }

    private func find(
        _ installation: StableHash.Value, _ handler: HandlerNameTable.ID
    ) -> (index: UInt32, before: UInt32?)? {
        var before: UInt32?
        var index = first[installation] ?? Self.none
        while index != Self.none {
            if slots[Int(index)].handler == handler { return (index, before) }
            before = index
            index = slots[Int(index)].next
        }
        return nil
    }

    private func row(at index: UInt32) -> Row {
        let slot = slots[Int(index)]
        let sequence = slot.sequence == Self.noSequence ? nil : slot.sequence
        return Row(
            handler: slot.handler,
            standing: RecordStanding(
                offset: slot.offset,
                owner: slot.since < 0
                    ? nil : Ownership(since: slot.since, seconds: slot.seconds),
                order: slot.isOrdered ? sequence.map(ClientOrder.sequence) ?? .none : .none),
            summary: RegistrationSummary(
                sequence: sequence, tokenClass: Self.tokenClass(of: slot.tokenClass),
                content: slot.content))
    }

    private static func code(of tokenClass: RegistrationClass?) -> UInt8 {
        guard let tokenClass else { return 0 }
        return UInt8(RegistrationClass.allCases.firstIndex(of: tokenClass)! + 1)
    }

    private static func tokenClass(of code: UInt8) -> RegistrationClass? {
        code == 0 ? nil : RegistrationClass.allCases[Int(code) - 1]
    }
}

/// The names of handlers, each held once while a row has it: most apps have a handful.
struct HandlerNameTable {
    typealias ID = UInt32

    private var ids: [String: ID] = [:]
    private var names: [(name: String, uses: Int)] = []
    private var free: [ID] = []
    /// How many of them are those of imports.
    private(set) var imports = 0

    var count: Int { ids.count }

    func id(of name: String) -> ID? { ids[name] }
    func name(of id: ID) -> String { names[Int(id)].name }

    /// Counts one use more of the name.
    mutating func retain(_ name: String) -> ID {
        if let id = ids[name] {
            names[Int(id)].uses += 1
            return id
        }
        if ImportedRegistration.isHandler(name) { imports += 1 }
        if let id = free.popLast() {
            names[Int(id)] = (name, 1)
            ids[name] = id
            return id
        }
        let id = ID(names.count)
        names.append((name, 1))
        ids[name] = id
        return id
    }

    mutating func release(_ id: ID) {
        names[Int(id)].uses -= 1
        guard names[Int(id)].uses == 0 else { return }
        if ImportedRegistration.isHandler(names[Int(id)].name) { imports -= 1 }
        ids[names[Int(id)].name] = nil
        names[Int(id)].name = ""
        free.append(id)
    }
}
