// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Simdjson
internal import Testing

@testable internal import RegistrarRules

private typealias Arbiter = `A registration arbiter`

@Suite struct `The fence of registrations` {
    @Test func `all records before an own removal count for nothing, not only the first of them`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(17, at: 0))
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage"), in: 0, as: 1)
        arbiter.reported(Arbiter.split(arbiter.takeActions()).writes[0], offset: 5)
        for offset in 2...4 as ClosedRange<Int64> {
            arbiter.take(Arbiter.record(17 + offset, at: offset))
        }
        #expect(arbiter.registrations == 0)
        arbiter.take(Arbiter.tombstone(at: 5))
        arbiter.take(Arbiter.record(1, at: 6))
        #expect(arbiter.registrations == 1)
    }

    @Test func `a handler that was written twice leaves no name behind when it is removed`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(17, at: 0))
        arbiter.take(Arbiter.record(18, at: 1))
        #expect(arbiter.handlers.count == 1)
        arbiter.take(Arbiter.tombstone(at: 2))
        #expect(arbiter.registrations == 0 && arbiter.handlers.count == 0)
    }

    @Test func `a handler that comes after another was removed has its own name`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(17, at: 0))
        arbiter.take(Arbiter.tombstone(at: 1))
        arbiter.take(Arbiter.record(1, at: 2, handler: "Lights"))
        let listed = arbiter.list(Arbiter.key, in: [0])
        #expect(listed?.count == 1 && listed?.first?.handler == "Lights")
        arbiter.take(Arbiter.tombstone(at: 3, handler: "Lights"))
        #expect(arbiter.registrations == 0 && arbiter.handlers.count == 0)
    }
}

@Suite struct `The order of owners` {
    /// A later owner's.
    private static let next = Ownership(since: 4, seconds: 1)

    /// The records that a arbiter writes by itself.
    private static func repairs(_ arbiter: inout RegistrationArbiter) -> [RegistrationWrite] {
        arbiter.takeActions().compactMap {
            if case .write(let record) = $0 { record } else { nil }
        }
    }

    private static func asksForNewest(_ arbiter: inout RegistrationArbiter) -> Int64? {
        arbiter.takeActions().compactMap {
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
        let former = RecordStanding(offset: 8, owner: Arbiter.former, order: late)
        let own = RecordStanding(offset: 7, owner: Self.next, order: first)
        #expect(former.prevails(over: own) == stands)
        #expect(own.prevails(over: former) == !stands)
    }

    @Test func `of one owner, and of those who are no registrars, the later record stands`() {
        for owner in [nil, Arbiter.former] as [Ownership?] {
            let late = RecordStanding(offset: 8, owner: owner, order: .sequence(1))
            let first = RecordStanding(offset: 7, owner: Arbiter.former, order: .sequence(5))
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
        var arbiter = Arbiter.owner()
        arbiter.put(Arbiter.put(7), in: 0, as: 1, now: Arbiter.now)
        arbiter.reported(Arbiter.split(arbiter.takeActions()).writes[0], offset: 4)
        arbiter.take(Arbiter.record(7, at: 4, order: .sequence(7)))
        _ = arbiter.takeActions()
        arbiter.take(Arbiter.tombstone(at: 5, owner: Arbiter.former, order: .below(6)))
        #expect(Self.asksForNewest(&arbiter) == 4)
        #expect(arbiter.registrations == 1)
        arbiter.writeAgain(Arbiter.key, handler: "Garage", partition: 0, offset: 4, value: [1])
        #expect(Self.repairs(&arbiter).map(\.order) == [.sequence(7)])
    }

    @Test func `a former owner's removal of what is newer than it knew takes that away`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(7, at: 4, order: .sequence(7)))
        arbiter.take(Arbiter.tombstone(at: 5, owner: Arbiter.former, order: .below(8)))
        #expect(arbiter.takeActions().isEmpty && arbiter.registrations == 0)
    }

    @Test func `what was removed does not come back by a former owner`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(5, at: 0, owner: nil))
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage"), in: 0, as: 1)
        arbiter.reported(Arbiter.split(arbiter.takeActions()).writes[0], offset: 4)
        arbiter.take(Arbiter.tombstone(at: 4))
        _ = arbiter.takeActions()
        arbiter.take(Arbiter.record(6, at: 5, owner: Arbiter.former, order: .sequence(6)))
        let again = Self.repairs(&arbiter)
        #expect(again.count == 1 && again.first?.value == nil && arbiter.writtenAgain == 1)
        #expect(arbiter.registrations == 0)
        // While it is under way, another request for the same waits for it.
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage"), in: 0, as: 2)
        #expect(arbiter.takeActions().isEmpty)
        arbiter.reported(again[0].ticket, offset: 6)
        #expect(Arbiter.split(arbiter.takeActions()).answers == [.removed])
    }

    @Test func `what a registrar of a version before writes to another's partition does not stand`()
    {
        var arbiter = Arbiter.owner()
        arbiter.put(Arbiter.put(9), in: 0, as: 1, now: Arbiter.now)
        arbiter.reported(Arbiter.split(arbiter.takeActions()).writes[0], offset: 4)
        arbiter.take(Arbiter.record(9, at: 4, order: .sequence(9)))
        _ = arbiter.takeActions()
        var older = Arbiter.record(5, at: 5, owner: nil, order: .sequence(5))
        older.isOfRegistrar = true
        arbiter.take(older)
        #expect(Self.asksForNewest(&arbiter) == 4)
        var removal = Arbiter.tombstone(at: 6, owner: nil)
        removal.isOfRegistrar = true
        arbiter.take(removal)
        #expect(Self.asksForNewest(&arbiter) == 4 && arbiter.registrations == 1)
        // The client's order holds whoever wrote it.
        var newer = Arbiter.record(10, at: 7, owner: nil, order: .sequence(10))
        newer.isOfRegistrar = true
        arbiter.take(newer)
        #expect(arbiter.list(Arbiter.key, in: [0])?.first?.summary.sequence == 10)
    }

    /// Its writer's clock is ahead, or it is made up.
    @Test(arguments: [Ownership(since: 3, seconds: 1), Ownership(since: 0, seconds: .max)])
    func `what says that it is a later owner's stands once, and not over what is asked for next`(
        owner: Ownership
    ) {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(1, at: 2, order: .sequence(1)))
        arbiter.take(Arbiter.record(5, at: 3, owner: owner))
        #expect(arbiter.takeActions().isEmpty)
        #expect(arbiter.list(Arbiter.key, in: [0])?.first?.summary.sequence == 5)
        arbiter.put(Arbiter.put(6), in: 0, as: 1, now: Arbiter.now)
        let write = Self.repairs(&arbiter)[0]
        arbiter.reported(write.ticket, offset: 4)
        arbiter.take(Arbiter.record(6, at: 4, owner: write.owner, order: write.order))
        #expect(Self.repairs(&arbiter).isEmpty && arbiter.writtenAgain == 0)
        #expect(arbiter.list(Arbiter.key, in: [0])?.first?.summary.sequence == 6)
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage"), in: 0, as: 2)
        arbiter.reported(Self.repairs(&arbiter)[0].ticket, offset: 5)
        #expect(Self.repairs(&arbiter).isEmpty && arbiter.registrations == 0)
    }

    @Test func `a removal in one class leaves a handler of another`() {
        var arbiter = Arbiter.owner()
        arbiter.take(Arbiter.record(5, at: 0))
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage", tokenClass: .widgets),
            in: 0,
            as: 1)
        let split = Arbiter.split(arbiter.takeActions())
        #expect(split.writes.isEmpty && split.answers == [.removed] && arbiter.registrations == 1)
        arbiter.remove(
            RegistrationArbiter.Removal(key: Arbiter.key, handler: "Garage", tokenClass: .controls),
            in: 0, as: 2)
        #expect(Arbiter.split(arbiter.takeActions()).writes.count == 1)
    }

    @Test func `what a registrar of a version before has written as the owner stands`() {
        var arbiter = RegistrationArbiter(writer: 7, seed: 1, underWayMax: 100, handlersMax: 64)
        arbiter.assigned(0, logEnd: 2)
        arbiter.take(Arbiter.record(nil, at: 0, owner: Arbiter.former))
        var later = Arbiter.record(3, at: 1, owner: nil, order: .sequence(3))
        later.isOfRegistrar = true
        arbiter.take(later)
        arbiter.caughtUp(0, now: Arbiter.now)
        #expect(arbiter.takeActions().isEmpty)
        #expect(arbiter.list(Arbiter.key, in: [0])?.first?.summary.sequence == 3)
    }

    @Test func `it does not matter whether a record is read before one's own is acknowledged`() {
        var arbiter = Arbiter.owner()
        arbiter.put(Arbiter.put(nil), in: 0, as: 1, now: Arbiter.now)
        let ticket = Arbiter.split(arbiter.takeActions()).writes[0]
        arbiter.take(Arbiter.record(9, at: 5, owner: Arbiter.former))
        #expect(arbiter.takeActions().isEmpty)
        arbiter.reported(ticket, offset: 4)
        #expect(Self.asksForNewest(&arbiter) == 4)
    }

    @Test func `a former owner learns from the log what stands, and repairs nothing of the next`() {
        var arbiter = Arbiter.owner()
        arbiter.put(Arbiter.put(nil), in: 0, as: 1, now: Arbiter.now)
        arbiter.reported(Arbiter.split(arbiter.takeActions()).writes[0], offset: 4)
        _ = arbiter.takeActions()
        arbiter.take(Arbiter.record(0, at: 5, owner: Self.next))
        #expect(arbiter.takeActions().isEmpty)
        #expect(arbiter.list(Arbiter.key, in: [0])?.first?.offset == 5)
    }

    @Test func `what former owners wrote is put right by whoever reads it first as the owner`() {
        var arbiter = RegistrationArbiter(writer: 7, seed: 1)
        arbiter.assigned(0, logEnd: 4)
        arbiter.take(Arbiter.record(5, at: 0, owner: Self.next, handler: "Lights"))
        arbiter.take(Arbiter.tombstone(at: 1, owner: Self.next))
        arbiter.take(Arbiter.record(6, at: 2, owner: Arbiter.former))
        arbiter.take(Arbiter.tombstone(at: 3, owner: Arbiter.former, handler: "Lights"))
        #expect(arbiter.takeActions().isEmpty, "it does not own it yet")
        arbiter.caughtUp(0, now: Arbiter.now)
        var written: [RegistrationWrite] = []
        var asked: [Int64] = []
        for action in arbiter.takeActions() {
            switch action {
            case .write(let record): written.append(record)
            case .writeAgain(_, "Lights", _, let offset): asked.append(offset)
            default: Issue.record("\(action)")
            }
        }
        #expect(asked == [0] && written.map(\.value) == [nil])
        #expect(written.map(\.owner) == [Ownership(since: 4, at: Arbiter.now)])
    }

    @Test func `what is put right waits behind nobody, however many writes are under way`() {
        var arbiter = Arbiter.owner(underWayMax: 1)
        arbiter.take(Arbiter.record(18, at: 4))
        arbiter.put(Arbiter.put(1, handler: "Lights"), in: 0, as: 1, now: Arbiter.now)
        arbiter.take(Arbiter.record(17, at: 5, owner: Arbiter.former))
        _ = arbiter.takeActions()
        arbiter.writeAgain(Arbiter.key, handler: "Garage", partition: 0, offset: 4, value: [1])
        #expect(Self.repairs(&arbiter).count == 1)
    }

    @Test func `an owner's time begins at the end that it has read, or was told`() {
        for (logEnd, last, since) in [(9, 3, 9), (2, 3, 4), (0, nil, 0)] as [(Int64, Int64?, Int64)]
        {
            var arbiter = RegistrationArbiter(writer: 7, seed: 1)
            arbiter.assigned(0, logEnd: logEnd)
            if let last { arbiter.take(Arbiter.record(1, at: last, handler: "Lights")) }
            arbiter.caughtUp(0, now: Arbiter.now)
            arbiter.put(Arbiter.put(1), in: 0, as: 1, now: Arbiter.now)
            #expect(
                Self.repairs(&arbiter).map(\.owner) == [Ownership(since: since, at: Arbiter.now)])
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
                _ = try reader.snapshot(object, of: Arbiter.key, .controls, handler: "Garage")
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
