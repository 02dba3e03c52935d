// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// The names of kinds that some subscription shows. Each app has its own numbers, so an app that
/// uses them up takes none from another.
///
/// A number whose last subscription has gone is handed out again after `reclaimUnused()`, since an
/// event that is under way may still name it.
struct KindTable: ~Copyable, Sendable {
    struct Row: BitwiseCopyable {
        /// The block of the kind's name; in a free row, the app's next free number.
        var block: UInt32 = 0
        /// The number of subscriptions that name the kind.
        var references: UInt32 = 0
        /// The length of the name in bytes; 0 marks a free row.
        var length: UInt16 = 0
        var isListedUnused = false
    }

    struct App {
        /// The lowest number never handed out.
        var fresh: UInt32 = 1
        /// The first of its free numbers; 0 for none.
        var free: UInt32 = 0
        var count = 0
        /// How many rows of registrations were taken without their kind.
        var refused = 0
    }

    /// Indexed by `app << 16 | number`, which is also how the index names a row.
    var rows: Column<Row>
    var apps: [App]
    var names: ByteArena
    var index: IndexTable
    /// Rows that reached zero references since the last reclaim, each once.
    var unused: [UInt32] = []
    private let seed: UInt64

    /// The most kinds of one app: all that 16 bits can name except `KindID.none` and
    /// `KindID.unknown`.
    static let countMax = 65_534
    /// The longest name in bytes.
    static let bytesMax = 256
    /// The rows of one app, one for each number.
    private static let numbers = 1 << 16
    /// Address space for an app's names. Freed blocks are not merged, so at worst blocks of every
    /// size have once held a name for each number: 65,536 × (8 + 16 + … + 256).
    private static let nameBytesMax = numbers * (8 + bytesMax) * (bytesMax / 8) / 2

    init(apps: Int, seed: UInt64) {
        let apps = max(1, apps)
        rows = Column(capacity: apps * Self.numbers)
        rows.extend(to: apps * Self.numbers)
        self.apps = Array(repeating: App(), count: apps)
        names = ByteArena(
            reservedBytes: min(apps * Self.nameBytesMax, ByteArena.reservedBytesMax))
        index = IndexTable(reservedSlots: min(2 * apps * Self.numbers, 1 << 30))
        self.seed = seed
    }

    /// The number of kinds in all apps.
    var count: Int { index.count }
    var freeBytes: Int { names.freeBytes }
    var memoryBytes: Int {
        let rows = apps.reduce(0) { $0 + Int($1.fresh) }
        return rows * MemoryLayout<Row>.stride + names.bytes + index.bytes
    }

    /// The names of all kinds of an app that some subscription shows.
    func names(of app: AppID) -> [String] {
        (1..<max(1, apps[Int(app.rawValue)].fresh)).compactMap { number in
            let row = rows[Int(app.rawValue) << 16 | Int(number)]
            guard row.references > 0 else { return nil }
            return String(
                decoding: names.bytes(row.block, offset: 0, count: Int(row.length)), as: UTF8.self)
        }
    }

    func find(_ app: AppID, _ name: UnsafeRawBufferPointer) -> KindID? {
        row(app, name).map { KindID(rawValue: UInt16(truncatingIfNeeded: $0)) }
    }

    private func row(_ app: AppID, _ name: UnsafeRawBufferPointer) -> UInt32? {
        index.row(hash: hash(app, name)) { row in
            row >> 16 == app.rawValue && Int(rows[Int(row)].length) == name.count
                && names.holds(name, at: rows[Int(row)].block, offset: 0)
        }
    }

    /// Finds or makes the kind's number, which the subscription that names it must retain. Nil, and
    /// counted, when the app has used up its numbers.
    mutating func intern(_ app: AppID, _ name: UnsafeRawBufferPointer) -> KindID? {
        if let known = find(app, name) { return known }
        guard let number = takeNumber(of: app) else {
            apps[Int(app.rawValue)].refused += 1
            return nil
        }
        let row = Self.row(app, number)
        let block = names.allocate(bytes: name.count)
        names.write(name, to: block, offset: 0)
        rows[Int(row)] = Row(block: block, length: UInt16(name.count))
        index.insert(hash: hash(app, name), row: row)
        apps[Int(app.rawValue)].count += 1
        return number
    }

    private mutating func takeNumber(of app: AppID) -> KindID? {
        let place = Int(app.rawValue)
        let free = apps[place].free
        if free != 0 {
            let number = KindID(rawValue: UInt16(free))
            apps[place].free = rows[Int(Self.row(app, number))].block
            return number
        }
        guard apps[place].fresh <= Self.countMax else { return nil }
        apps[place].fresh += 1
        return KindID(rawValue: UInt16(apps[place].fresh - 1))
    }

    /// A subscription of this app names the kind from now on.
    mutating func retain(_ app: AppID, _ kind: KindID) {
        guard kind != .none else { return }
        rows[Int(Self.row(app, kind))].references += 1
    }

    /// A subscription of this app no longer names the kind.
    mutating func release(_ app: AppID, _ kind: KindID) {
        guard kind != .none else { return }
        let row = Self.row(app, kind)
        rows[Int(row)].references -= 1
        guard rows[Int(row)].references == 0, !rows[Int(row)].isListedUnused else { return }
        rows[Int(row)].isListedUnused = true
        unused.append(row)
    }

    var hasUnused: Bool { !unused.isEmpty }

    /// Frees the numbers that no subscription names.
    mutating func reclaimUnused() {
        for row in unused {
            rows[Int(row)].isListedUnused = false
            guard rows[Int(row)].references == 0 else { continue }
            let app = AppID(rawValue: UInt16(row >> 16))
            index.remove(hash: hash(app, name(ofRow: row)), row: row)
            names.free(rows[Int(row)].block, bytes: Int(rows[Int(row)].length))
            rows[Int(row)] = Row(block: apps[Int(app.rawValue)].free)
            apps[Int(app.rawValue)].free = row & 0xFFFF
            apps[Int(app.rawValue)].count -= 1
        }
        unused.removeAll(keepingCapacity: true)
    }

    /// The bytes of the kind's name; empty for `KindID.none`.
    func name(of kind: KindID, in app: AppID) -> UnsafeRawBufferPointer {
        kind == .none
            ? UnsafeRawBufferPointer(start: nil, count: 0) : name(ofRow: Self.row(app, kind))
    }

    func name(ofRow row: UInt32) -> UnsafeRawBufferPointer {
        names.bytes(rows[Int(row)].block, offset: 0, count: Int(rows[Int(row)].length))
    }

    /// Apps that have no number left, with how many rows have been taken without their kind so far.
    var full: [(app: AppID, refused: Int)] {
        apps.indices.compactMap { place in
            guard apps[place].count >= Self.countMax, apps[place].refused > 0 else { return nil }
            return (AppID(rawValue: UInt16(place)), apps[place].refused)
        }
    }

    // MARK: Checks

    /// Traps unless every kind can be found, is needed, and has exactly these references.
    ///
    /// - Parameter expected: by app and kind.
    func checkInvariants(references expected: [AppID: [KindID: Int]]) {
        index.checkInvariants()
        var found = 0
        index.forEach { row in
            let app = AppID(rawValue: UInt16(row >> 16))
            let kind = KindID(rawValue: UInt16(truncatingIfNeeded: row))
            let held = expected[app]?[kind] ?? 0
            precondition(
                find(app, name(of: kind, in: app)) == kind, "a kind is found by its app and name")
            precondition(
                Int(rows[Int(row)].references) == held,
                "a kind's count of references is that of the rows that have it")
            precondition(
                held > 0 || rows[Int(row)].isListedUnused,
                "a kind without a row is listed as unused")
            precondition(
                rows[Int(row)].isListedUnused == unused.contains(row),
                "a kind says that it is listed as unused exactly when it is")
            if held > 0 { found += 1 }
        }
        precondition(
            found == expected.values.reduce(0) { $0 + $1.count },
            "each kind that a row has is in the index")
        precondition(
            apps.reduce(0) { $0 + $1.count } == count, "the count of kinds is that of all apps")
    }

    static func row(_ app: AppID, _ kind: KindID) -> UInt32 {
        UInt32(app.rawValue) << 16 | UInt32(kind.rawValue)
    }

    func hash(_ app: AppID, _ name: UnsafeRawBufferPointer) -> UInt64 {
        StableHash.hash64(name, seed: seed &+ UInt64(app.rawValue) &* 0x9E37_79B9_7F4A_7C15)
    }
}
