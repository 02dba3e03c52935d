// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson
internal import Testing

@testable internal import RegistrarRules

private typealias Desk = `A registration desk`

@Suite struct `The fence of registrations` {
    @Test func `all records before an own removal count for nothing, not only the first of them`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.remove(RegistrationDesk.Removal(key: Desk.key, handler: "Garage"), in: 0, as: 1)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 5)
        for offset in 2...4 as ClosedRange<Int64> {
            desk.take(Desk.record(17 + offset, at: offset))
        }
        #expect(desk.registrations == 0)
        desk.take(Desk.tombstone(at: 5))
        desk.take(Desk.record(1, at: 6))
        #expect(desk.registrations == 1)
    }

    @Test func `a handler that was written twice leaves no name behind when it is removed`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.take(Desk.record(18, at: 1))
        #expect(desk.handlers.count == 1)
        desk.take(Desk.tombstone(at: 2))
        #expect(desk.registrations == 0 && desk.handlers.count == 0)
    }

    @Test func `a handler that comes after another was removed has its own name`() {
        var desk = Desk.owner()
        desk.take(Desk.record(17, at: 0))
        desk.take(Desk.tombstone(at: 1))
        desk.take(Desk.record(1, at: 2, handler: "Lights"))
        let listed = desk.list(Desk.key, in: [0])
        #expect(listed?.count == 1 && listed?.first?.handler == "Lights")
        desk.take(Desk.tombstone(at: 3, handler: "Lights"))
        #expect(desk.registrations == 0 && desk.handlers.count == 0)
    }
}

@Suite struct `The order of owners` {
    /// A later owner's.
    private static let next = Ownership(since: 4, seconds: 1)

    /// The records that a desk writes by itself.
    private static func repairs(_ desk: inout RegistrationDesk) -> [RegistrationWrite] {
        desk.takeActions().compactMap {
            if case .write(let record) = $0 { record } else { nil }
        }
    }

    private static func asksForNewest(_ desk: inout RegistrationDesk) -> Int64? {
        desk.takeActions().compactMap {
            if case .writeAgain(_, _, _, let offset) = $0 { offset } else { nil }
        }.last
    }

    @Test(arguments: [
        // Without an order of the client, the owner decides.
        (ClientOrder.none, ClientOrder.none, false), (.sequence(9), .none, false),
        (.none, .sequence(1), false), (.below(9), .none, false), (.none, .below(1), false),
        // With one, the client does.
        (.sequence(6), .sequence(5), true), (.sequence(5), .sequence(6), false),
        (.below(6), .sequence(5), true), (.below(5), .sequence(5), false),
        (.sequence(5), .below(5), true), (.sequence(4), .below(5), false),
        // Where he has said the same of both, the owner does.
        (.sequence(5), .sequence(5), false), (.below(9), .below(1), false),
    ])
    func `what a former owner writes late stands only where the client says so`(
        late: ClientOrder, first: ClientOrder, stands: Bool
    ) {
        let former = RecordStanding(offset: 8, owner: Desk.former, order: late)
        let own = RecordStanding(offset: 7, owner: Self.next, order: first)
        #expect(former.prevails(over: own) == stands)
        #expect(own.prevails(over: former) == !stands)
    }

    @Test func `of one owner, and of those who are no registrars, the later record stands`() {
        for owner in [nil, Desk.former] as [Ownership?] {
            let late = RecordStanding(offset: 8, owner: owner, order: .sequence(1))
            let first = RecordStanding(offset: 7, owner: Desk.former, order: .sequence(5))
            #expect(late.prevails(over: first) && !first.prevails(over: late))
        }
    }

    @Test func `an owner after another that wrote nothing is told from it by the time`() {
        #expect(Ownership(since: 4, seconds: 2) > Ownership(since: 4, seconds: 1))
        #expect(Ownership(since: 5, seconds: 1) > Ownership(since: 4, seconds: 2))
    }

    @Test(arguments: [
        "", "4", "4 ", " 1", "4 1 2", "4  1", "-1 1", "4 -1", "8 1", "9223372036854775808 1",
        "4 4294967296", "4,1", "four 1",
    ])
    func `a header that cannot be true is none`(text: String) {
        #expect(Ownership(text: text, at: 7) == nil)
    }

    @Test func `a header says the owner`() {
        let owner = Ownership(since: 7, seconds: .max)
        #expect(Ownership(text: owner.text, at: 7) == owner)
    }

    @Test func `a former owner's removal takes away nothing`() {
        var desk = Desk.owner()
        desk.put(Desk.put(7), in: 0, as: 1, now: Desk.now)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 4)
        desk.take(Desk.record(7, at: 4, order: .sequence(7)))
        _ = desk.takeActions()
        desk.take(Desk.tombstone(at: 5, owner: Desk.former, order: .below(6)))
        #expect(Self.asksForNewest(&desk) == 4)
        #expect(desk.registrations == 1)
        desk.writeAgain(Desk.key, handler: "Garage", partition: 0, offset: 4, value: [1])
        #expect(Self.repairs(&desk).map(\.order) == [.sequence(7)])
    }

    @Test func `a former owner's removal of what is newer than it knew takes that away`() {
        var desk = Desk.owner()
        desk.take(Desk.record(7, at: 4, order: .sequence(7)))
        desk.take(Desk.tombstone(at: 5, owner: Desk.former, order: .below(8)))
        #expect(desk.takeActions().isEmpty && desk.registrations == 0)
    }

    @Test func `what was removed does not come back by a former owner`() {
        var desk = Desk.owner()
        desk.take(Desk.record(5, at: 0, owner: nil))
        desk.remove(RegistrationDesk.Removal(key: Desk.key, handler: "Garage"), in: 0, as: 1)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 4)
        desk.take(Desk.tombstone(at: 4))
        _ = desk.takeActions()
        desk.take(Desk.record(6, at: 5, owner: Desk.former, order: .sequence(6)))
        let again = Self.repairs(&desk)
        #expect(again.count == 1 && again.first?.value == nil && desk.writtenAgain == 1)
        #expect(desk.registrations == 0)
        // While it is under way, another request for the same waits for it.
        desk.remove(RegistrationDesk.Removal(key: Desk.key, handler: "Garage"), in: 0, as: 2)
        #expect(desk.takeActions().isEmpty)
        desk.reported(again[0].ticket, offset: 6)
        #expect(Desk.split(desk.takeActions()).answers == [.removed])
    }

    @Test func `what a registrar of a version before writes to another's partition does not stand`()
    {
        var desk = Desk.owner()
        desk.put(Desk.put(9), in: 0, as: 1, now: Desk.now)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 4)
        desk.take(Desk.record(9, at: 4, order: .sequence(9)))
        _ = desk.takeActions()
        var older = Desk.record(5, at: 5, owner: nil, order: .sequence(5))
        older.isOfRegistrar = true
        desk.take(older)
        #expect(Self.asksForNewest(&desk) == 4)
        var removal = Desk.tombstone(at: 6, owner: nil)
        removal.isOfRegistrar = true
        desk.take(removal)
        #expect(Self.asksForNewest(&desk) == 4 && desk.registrations == 1)
        // The client's order holds whoever wrote it.
        var newer = Desk.record(10, at: 7, owner: nil, order: .sequence(10))
        newer.isOfRegistrar = true
        desk.take(newer)
        #expect(desk.list(Desk.key, in: [0])?.first?.summary.sequence == 10)
    }

    /// Its writer's clock is ahead, or it is made up.
    @Test(arguments: [Ownership(since: 3, seconds: 1), Ownership(since: 0, seconds: .max)])
    func `what says that it is a later owner's stands once, and not over what is asked for next`(
        owner: Ownership
    ) {
        var desk = Desk.owner()
        desk.take(Desk.record(1, at: 2, order: .sequence(1)))
        desk.take(Desk.record(5, at: 3, owner: owner))
        #expect(desk.takeActions().isEmpty)
        #expect(desk.list(Desk.key, in: [0])?.first?.summary.sequence == 5)
        desk.put(Desk.put(6), in: 0, as: 1, now: Desk.now)
        let write = Self.repairs(&desk)[0]
        desk.reported(write.ticket, offset: 4)
        desk.take(Desk.record(6, at: 4, owner: write.owner, order: write.order))
        #expect(Self.repairs(&desk).isEmpty && desk.writtenAgain == 0)
        #expect(desk.list(Desk.key, in: [0])?.first?.summary.sequence == 6)
        desk.remove(RegistrationDesk.Removal(key: Desk.key, handler: "Garage"), in: 0, as: 2)
        desk.reported(Self.repairs(&desk)[0].ticket, offset: 5)
        #expect(Self.repairs(&desk).isEmpty && desk.registrations == 0)
    }

    @Test func `a removal in one class leaves a handler of another`() {
        var desk = Desk.owner()
        desk.take(Desk.record(5, at: 0))
        desk.remove(
            RegistrationDesk.Removal(key: Desk.key, handler: "Garage", tokenClass: .widgets), in: 0,
            as: 1)
        let split = Desk.split(desk.takeActions())
        #expect(split.writes.isEmpty && split.answers == [.removed] && desk.registrations == 1)
        desk.remove(
            RegistrationDesk.Removal(key: Desk.key, handler: "Garage", tokenClass: .controls),
            in: 0, as: 2)
        #expect(Desk.split(desk.takeActions()).writes.count == 1)
    }

    @Test func `what a registrar of a version before has written as the owner stands`() {
        var desk = RegistrationDesk(writer: 7, seed: 1, underWayMax: 100, handlersMax: 64)
        desk.assigned(0, logEnd: 2)
        desk.take(Desk.record(nil, at: 0, owner: Desk.former))
        var later = Desk.record(3, at: 1, owner: nil, order: .sequence(3))
        later.isOfRegistrar = true
        desk.take(later)
        desk.caughtUp(0, now: Desk.now)
        #expect(desk.takeActions().isEmpty)
        #expect(desk.list(Desk.key, in: [0])?.first?.summary.sequence == 3)
    }

    @Test func `it does not matter whether a record is read before one's own is acknowledged`() {
        var desk = Desk.owner()
        desk.put(Desk.put(nil), in: 0, as: 1, now: Desk.now)
        let ticket = Desk.split(desk.takeActions()).writes[0]
        desk.take(Desk.record(9, at: 5, owner: Desk.former))
        #expect(desk.takeActions().isEmpty)
        desk.reported(ticket, offset: 4)
        #expect(Self.asksForNewest(&desk) == 4)
    }

    @Test func `a former owner learns from the log what stands, and repairs nothing of the next`() {
        var desk = Desk.owner()
        desk.put(Desk.put(nil), in: 0, as: 1, now: Desk.now)
        desk.reported(Desk.split(desk.takeActions()).writes[0], offset: 4)
        _ = desk.takeActions()
        desk.take(Desk.record(0, at: 5, owner: Self.next))
        #expect(desk.takeActions().isEmpty)
        #expect(desk.list(Desk.key, in: [0])?.first?.offset == 5)
    }

    @Test func `what former owners wrote is put right by whoever reads it first as the owner`() {
        var desk = RegistrationDesk(writer: 7, seed: 1)
        desk.assigned(0, logEnd: 4)
        desk.take(Desk.record(5, at: 0, owner: Self.next, handler: "Lights"))
        desk.take(Desk.tombstone(at: 1, owner: Self.next))
        desk.take(Desk.record(6, at: 2, owner: Desk.former))
        desk.take(Desk.tombstone(at: 3, owner: Desk.former, handler: "Lights"))
        #expect(desk.takeActions().isEmpty, "it does not own it yet")
        desk.caughtUp(0, now: Desk.now)
        var written: [RegistrationWrite] = []
        var asked: [Int64] = []
        for action in desk.takeActions() {
            switch action {
            case .write(let record): written.append(record)
            case .writeAgain(_, "Lights", _, let offset): asked.append(offset)
            default: Issue.record("\(action)")
            }
        }
        #expect(asked == [0] && written.map(\.value) == [nil])
        #expect(written.map(\.owner) == [Ownership(since: 4, at: Desk.now)])
    }

    @Test func `what is put right waits behind nobody, however many writes are under way`() {
        var desk = Desk.owner(underWayMax: 1)
        desk.take(Desk.record(18, at: 4))
        desk.put(Desk.put(1, handler: "Lights"), in: 0, as: 1, now: Desk.now)
        desk.take(Desk.record(17, at: 5, owner: Desk.former))
        _ = desk.takeActions()
        desk.writeAgain(Desk.key, handler: "Garage", partition: 0, offset: 4, value: [1])
        #expect(Self.repairs(&desk).count == 1)
    }

    @Test func `an owner's time begins at the end that it has read, or was told`() {
        for (logEnd, last, since) in [(9, 3, 9), (2, 3, 4), (0, nil, 0)] as [(Int64, Int64?, Int64)]
        {
            var desk = RegistrationDesk(writer: 7, seed: 1)
            desk.assigned(0, logEnd: logEnd)
            if let last { desk.take(Desk.record(1, at: last, handler: "Lights")) }
            desk.caughtUp(0, now: Desk.now)
            desk.put(Desk.put(1), in: 0, as: 1, now: Desk.now)
            #expect(Self.repairs(&desk).map(\.owner) == [Ownership(since: since, at: Desk.now)])
        }
    }
}

@Suite struct `The memory of removals` {
    private static func standing(_ offset: Int64) -> RecordStanding {
        RecordStanding(offset: offset)
    }

    @Test func `keeps the latest, and those that have not come by whatever their number`() {
        var memory = RemovalMemory<Int>(countMax: 3)
        for name in 0..<10 { memory.note(name, Self.standing(Int64(name)), readTo: 5) }
        // 0 to 4 have come by.
        #expect((0..<10).filter { memory[$0] != nil } == [5, 6, 7, 8, 9])
        memory.note(10, Self.standing(10), readTo: 11)
        #expect((0..<11).filter { memory[$0] != nil } == [8, 9, 10])
    }

    @Test func `is bounded where one name is removed again and again`() {
        var memory = RemovalMemory<Int>(countMax: 3)
        for offset in 0..<100 {
            memory.note(1, Self.standing(Int64(offset)), readTo: 1000)
            memory.forget(1)
        }
        memory.note(2, Self.standing(200), readTo: 1000)
        memory.note(1, Self.standing(201), readTo: 1000)
        #expect(memory[1]?.offset == 201 && memory[2]?.offset == 200)
    }
}

@Suite struct `The bounds of a snapshot` {
    /// Where a body with these targets is refused if it may have three subjects; nil if it is not.
    private static func refused(targets: String) -> String? {
        var limits = RegistrarLimits()
        limits.subjectsMax = 3
        let reader = SnapshotReader(limits: limits)
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        return Array(#"{"targets":[\#(targets)]}"#.utf8).withUnsafeBytes { bytes in
            do throws(InvalidMember) {
                let object = try SnapshotReader.object(in: bytes, parser: &parser)
                _ = try reader.snapshot(object, of: Desk.key, .controls, handler: "Garage")
                return nil
            } catch { return error.pointer }
        }
    }

    /// Where an object with this JSON has a member twice; nil if it has none.
    private static func repeated(_ json: String) -> String? {
        var parser = JSONParser(bytesMax: 1 << 20, depthMax: 16)
        return Array(json.utf8).withUnsafeBytes { bytes in
            do throws(InvalidMember) {
                let object = try SnapshotReader.object(in: bytes, parser: &parser)
                try RepeatedMember.check(object, at: "")
                return nil
            } catch { return error.pointer }
        }
    }

    @Test func `the subjects of all targets together are bounded`() {
        let one = #"{"token":"00","shows":[{"subjects":["a"]}]}"#
        let two = #"{"token":"01","shows":[{"subjects":["b"]},{"subjects":["c"]}]}"#
        #expect(Self.refused(targets: "\(one),\(two)") == nil)
        #expect(Self.refused(targets: "\(two),\(two)") == "/targets")
    }

    @Test func `a kind without subjects counts as one that has one`() {
        func target(_ kinds: Int) -> String {
            let shows = (0..<kinds).map { #"{"kind":"k\#($0)"}"# }.joined(separator: ",")
            return #"{"token":"00","shows":[\#(shows)]}"#
        }
        #expect(Self.refused(targets: target(3)) == nil)
        #expect(Self.refused(targets: target(4)) != nil)
    }

    @Test func `a target without subjects counts as one that has one`() {
        let target = #"{"token":"00","shows":[]}"#
        #expect(Self.refused(targets: "\(target),\(target),\(target)") == nil)
        #expect(Self.refused(targets: "\(target),\(target),\(target),\(target)") == "/targets")
    }

    @Test(arguments: [2, 15, 16, 17, 40])
    func `a member that is there twice is found among many, however early its first`(count: Int) {
        let names = (0..<count).map { "m\($0)" }
        for name in ["m0", "m1", "m\(count - 1)"] {
            let once = names.map { "\"\($0)\":0" }.joined(separator: ",")
            #expect(Self.repeated("{\(once)}") == nil)
            #expect(Self.repeated("{\(once),\"\(name)\":1}") == "/\(name)")
        }
    }
}
