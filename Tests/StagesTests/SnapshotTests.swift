// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel
internal import Testing

@testable internal import Audience

private typealias Fixture = AudienceFixture

@Suite struct `A snapshot of the index` {
    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func `an index that was loaded is the one that was written, and stays it`(seed: UInt64) throws {
        let lists = FurtherLists(rawValue: UInt16(seed % 4))
        var live = Fixture.audience(lists)
        var life = SnapshotLife(seed: seed)
        for _ in 0..<400 { life.step(&live) }
        live.reclaimRemoved()
        let file = try SnapshotBytes(live, lists)
        var loaded = try file.audience(lists)
        loaded.checkInvariants()
        expectEqual(loaded, live)
        // From here on both hear the same.
        var twin = life
        for _ in 0..<400 {
            life.step(&live)
            twin.step(&loaded)
        }
        live.reclaimRemoved()
        loaded.reclaimRemoved()
        loaded.checkInvariants()
        expectEqual(loaded, live)
    }

    @Test func `an index without anything is written and loaded`() throws {
        let loaded = try SnapshotBytes(Fixture.audience()).audience()
        loaded.checkInvariants()
        let lines = loaded.dump()
        #expect(lines == [])
    }

    @Test func `the stamp and the notes come back as they were`() throws {
        let reader = try SnapshotBytes(Fixture.audience()).reader()
        let (stamp, notes) = (reader.stamp, reader.notes)
        #expect(stamp == SnapshotBytes.stamp)
        #expect(notes == Array("notes".utf8))
    }

    @Test func `what only the process that wrote the file needed is forgotten`() throws {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t", "visited"), ShownRow("t", "kept")]))
        let token = audience.token(named: "t")!
        audience.setPending(token, 77)
        audience.setCursor(audience.subject(named: "visited")!, true)
        audience.setCursor(audience.subject(named: "kept")!, true)
        audience.apply(Fixture.registration("a", [ShownRow("t", "kept", kind: "other")]))
        audience.reclaimRemoved()
        let before = (audience.subject(named: "visited"), audience.hasUnusedKinds)
        #expect(before.0 != nil && before.1)
        var loaded = try SnapshotBytes(audience).audience()
        loaded.checkInvariants()
        let (visited, kept) = (loaded.subject(named: "visited"), loaded.subject(named: "kept")!)
        let (hasCursor, hasUnusedKinds) = (loaded.hasCursor(kept), loaded.hasUnusedKinds)
        let pending = loaded.pending(loaded.token(named: "t")!)
        #expect(visited == nil && !hasCursor && pending == 0 && hasUnusedKinds)
        loaded.reclaimKinds()
        loaded.checkInvariants()
        let kinds = loaded.kindNames(of: Fixture.home)
        #expect(kinds == ["other"])
    }

    @Test func `a snapshot of other apps, environments or settings is not used`() throws {
        let file = try SnapshotBytes(Fixture.audience())
        for lists in [.kindWide, .installations] as [FurtherLists] {
            #expect(file.refusal(lists)?.contains("other apps") == true)
        }
        var other = RoutingTable()
        other.add(
            credential: "team", apps: ["com.example.Mail", "com.example.Home"],
            environments: PushEnvironment.allCases)
        #expect(throws: SnapshotFault.self) {
            _ = try file.reader().audience(routing: other, furtherLists: [])
        }
        var renamed = RoutingTable()
        renamed.add(
            credential: "another team", apps: ["com.example.Home", "com.example.Mail"],
            environments: PushEnvironment.allCases)
        _ = try file.reader().audience(routing: renamed, furtherLists: [])
    }

    @Test func `a file of another format says so before anything else`() throws {
        var file = try SnapshotBytes(Fixture.audience())
        file.bytes[8] = 9
        #expect(file.refusal() == "it has format 9, and this version reads 2")
        file.bytes[0] = 0
        #expect(file.refusal() == "it is no snapshot of an index")
    }

    /// If this fails because a row, a hash or a size class was changed, raise `IndexSnapshot.format`:
    /// the files of running workers would be read wrongly otherwise.
    @Test func `what a file means does not change without its format`() throws {
        var audience = Fixture.audience()
        audience.apply(
            Fixture.registration("a", [ShownRow("t", "s", kind: "k"), ShownRow("u", "s")]))
        audience.apply(Fixture.registration("b", [ShownRow("t", "x", hearsChanges: false)]))
        _ = audience.apply(suppressionAt: 500, "gone")
        let file = try SnapshotBytes(audience)
        var hash = StableHash()
        file.bytes.withUnsafeBytes { hash.combine($0) }
        #expect(IndexSnapshot.format == 2)
        #expect(String(hash.finish().high, radix: 16) == "ea496ca3e76f8722")
    }
}

@Suite struct `A snapshot that cannot be trusted` {
    private static let lists: FurtherLists = [.kindWide, .installations]

    private static func file() throws -> SnapshotBytes {
        var audience = Fixture.audience(Self.lists)
        var life = SnapshotLife(seed: 9, keys: 5)
        for _ in 0..<30 { life.step(&audience) }
        audience.reclaimRemoved()
        return try SnapshotBytes(audience, Self.lists)
    }

    @Test func `a file that ends at any of its bytes is refused`() throws {
        let file = try Self.file()
        var cut = file
        for length in 0..<file.bytes.count {
            cut.bytes = Array(file.bytes.prefix(length))
            if cut.refusal(Self.lists) == nil {
                Issue.record("\(length) of \(file.bytes.count) bytes are taken for a snapshot")
            }
            // As after a crash of the machine: the length is there, and the data is not.
            cut.bytes += Array(repeating: 0, count: file.bytes.count - length)
            if cut.bytes != file.bytes, cut.refusal(Self.lists) == nil {
                Issue.record("\(length) bytes and zeros are taken for a snapshot")
            }
        }
    }

    @Test func `a file with any bit changed is refused`() throws {
        let file = try Self.file()
        var changed = file
        for place in file.bytes.indices {
            changed.bytes[place] ^= 1 << UInt8(place % 8)
            if changed.refusal(Self.lists) == nil {
                Issue.record("byte \(place) may be anything")
            }
            changed.bytes[place] = file.bytes[place]
        }
    }

    /// The checksums are right, so the tables themselves must be refused, or be sound.
    @Test func `a forged file is refused, or is an index that works`() throws {
        let file = try Self.file()
        let values: [UInt8] = [0x00, 0x01, 0x7F, 0x80, 0xFF]
        var (refused, taken) = (0, 0)
        for place in 0..<file.dataBytes {
            var forged = file
            forged.forge { $0[place] = values[place % values.count] }
            guard forged.bytes != file.bytes else { continue }
            do throws(SnapshotFault) {
                var audience = try forged.audience(Self.lists)
                audience.checkInvariants()
                taken += 1
                if taken % 16 == 0 { SnapshotLife.exercise(&audience) }
            } catch {
                refused += 1
            }
        }
        #expect(refused > file.dataBytes / 4)
        // Times, reasons and tombstones' memory may be anything.
        #expect(taken > 0)
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func `words that point elsewhere are refused, or make an index that works`(
        seed: UInt64
    ) throws {
        let file = try Self.file()
        var dice = AudienceDice(seed: seed)
        for _ in 0..<1_000 {
            var forged = file
            forged.forge { data in
                for _ in 0...dice.below(2) {
                    let (place, source) = (
                        dice.below(data.count / 4) * 4, dice.below(data.count / 4) * 4
                    )
                    for byte in 0..<4 { data[place + byte] = data[source + byte] }
                }
            }
            guard var audience = try? forged.audience(Self.lists) else { continue }
            audience.checkInvariants()
            SnapshotLife.exercise(&audience)
        }
    }

    @Test(arguments: [.kindWide, .installations] as [FurtherLists])
    func `a file with lists that its head does not announce is refused`(
        lists: FurtherLists
    ) throws {
        var audience = Fixture.audience(lists)
        audience.apply(
            Fixture.registration("production/com.example.Home/I/h", [ShownRow("t", "door")]))
        let fault = try SnapshotBytes(audience, lists).refusal(lists)
        #expect(fault == nil)
        var forged = try SnapshotBytes(audience, [])
        var stamp = FieldWriter()
        SnapshotBytes.stamp.write(to: &stamp)
        // Behind the prelude, the stamp and the seed.
        let place = IndexSnapshot.preludeBytes + stamp.bytes.count + 8
        forged.forge { data in
            #expect(data[place] == UInt8(lists.rawValue))
            data[place] = 0
        }
        #expect(forged.refusal() == "it has a subject that cannot be")
    }

    @Test func `a file that is longer or shorter than its head says is refused`() throws {
        let file = try Self.file()
        for change in [-1, 1, 8, 4096] {
            var forged = file
            forged.forge { data in
                if change < 0 {
                    data.removeLast(-change)
                } else {
                    data += Array(repeating: 0, count: change)
                }
            }
            #expect(forged.refusal(Self.lists) != nil)
        }
    }
}

private func expectEqual(
    _ left: borrowing Audience, _ right: borrowing Audience,
    at location: SourceLocation = #_sourceLocation
) {
    let lines = (left.dump(), right.dump())
    #expect(lines.0 == lines.1, sourceLocation: location)
    let figures = (left.statistics.sameContent, right.statistics.sameContent)
    #expect(figures.0 == figures.1, sourceLocation: location)
}

/// A random life of an index, which two copies can go through.
struct SnapshotLife {
    private var dice: AudienceDice
    private var time: Int64 = 100
    private let keys: Int

    init(seed: UInt64, keys: Int = 30) {
        dice = AudienceDice(seed: seed)
        self.keys = keys
    }

    mutating func step(_ audience: inout Audience) {
        time += 1
        switch dice.below(8) {
        case 0..<5: register(&audience)
        case 5: _ = audience.changes(removing: Self.key(dice.below(keys)))
        case 6: judge(&audience)
        default: audience.reclaimKinds()
        }
        audience.reclaimRemoved()
    }

    /// Of a few installations, each with several handlers.
    private static func key(_ number: Int) -> String { "e/a/i\(number % 7)/h\(number)" }

    private mutating func register(_ audience: inout Audience) {
        let number = dice.below(keys)
        var rows: [ShownRow] = []
        for _ in 0..<dice.below(dice.below(8) == 0 ? 40 : 5) {
            let classes: [TokenClass] = [.control, .widget, .device]
            rows.append(
                ShownRow(
                    "token-\(dice.below(keys))", dice.below(9) == 0 ? "" : "s\(dice.below(20))",
                    kind: "kind-\(dice.below(dice.below(5) == 0 ? 60 : 3))", classes[dice.below(3)],
                    hearsChanges: dice.below(4) > 0))
        }
        audience.apply(
            Fixture.registration(
                Self.key(number), app: number % 3 == 0 ? Fixture.mail : Fixture.home, at: time, rows
            )
        )
    }

    private mutating func judge(_ audience: inout Audience) {
        let token = "token-\(dice.below(2 * keys))"
        if dice.below(3) == 0 {
            _ = audience.revokeSuppression(token)
        } else {
            _ = audience.apply(suppressionAt: time - Int64(dice.below(6)), token)
        }
    }

    /// Uses all of an index, and takes it apart.
    static func exercise(_ audience: inout Audience) {
        var life = SnapshotLife(seed: 5, keys: 8)
        for _ in 0..<40 { life.step(&audience) }
        audience.checkInvariants()
        for key in 0..<8 {
            _ = audience.changes(removing: Self.key(key))
            audience.reclaimRemoved()
        }
        audience.reclaimKinds()
        audience.checkInvariants()
    }
}

extension AudienceStatistics {
    /// Without the memory, which may be at a peak.
    fileprivate var sameContent: [Int] {
        [tokens, subjects, subscriptions, registrations, kinds, suppressions, freeBytes]
    }
}
