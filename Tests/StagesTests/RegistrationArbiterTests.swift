// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import RecordFormats
import Simdjson
import Testing

@testable import RegistrarRules

@Suite struct `A registration arbiter` {
    static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")
    static let now = WallTime(milliseconds: 1_800_000_000_000)

    /// Of `owner()`, and of another that had the partition before and wrote nothing.
    static let current = Ownership(since: 0, at: now)
    static let former = Ownership(since: 0, seconds: 1)

    /// A arbiter that owns partition 0.
    static func owner(underWayMax: Int = 100, handlersMax: Int = 64) -> RegistrationArbiter {
        var arbiter = RegistrationArbiter(
            writer: 7, seed: 1, underWayMax: underWayMax, handlersMax: handlersMax)
        arbiter.assigned(0, logEnd: 0)
        arbiter.caughtUp(0, now: now)
        return arbiter
    }

    static func put(
        _ sequence: Int64?, content: UInt64 = 1, handler: String = "Garage",
        _ tokenClass: RegistrationClass = .controls, isEmpty: Bool = false
    ) -> RegistrationArbiter.Put {
        let target = RegistrationDraft.Target(
            tokenClass: tokenClass.tokenClass, token: [1, 2], shows: [])
        var put = RegistrationArbiter.Put(
            key: key, handler: handler, tokenClass: tokenClass, sequence: sequence,
            targets: isEmpty ? [] : [target])
        put.content = content
        return put
    }

    static func record(
        _ sequence: Int64?, at offset: Int64, owner: Ownership? = current,
        handler: String = "Garage", order: ClientOrder = .none
    ) -> RegistrationArbiter.Record {
        RegistrationArbiter.Record(
            partition: 0, offset: offset, key: key, handler: handler,
            summary: RegistrationSummary(sequence: sequence, tokenClass: .controls, content: 1),
            owner: owner, order: order)
    }

    /// A removal of the handler, as it is in the log.
    static func tombstone(
        at offset: Int64, owner: Ownership? = current, handler: String = "Garage",
        order: ClientOrder = .none
    ) -> RegistrationArbiter.Record {
        RegistrationArbiter.Record(
            partition: 0, offset: offset, key: key, handler: handler, summary: nil, owner: owner,
            order: order)
    }

    /// The tickets of the writes, and the answers, among the actions.
    static func split(
        _ actions: [RegistrationArbiter.Action]
    ) -> (writes: [RegistrationArbiter.Ticket], answers: [RegistrationArbiter.Answer]) {
        var writes: [RegistrationArbiter.Ticket] = []
        var answers: [RegistrationArbiter.Answer] = []
        for action in actions {
            switch action {
            case .write(let record): writes.append(record.ticket)
            case .answer(_, let answer): answers.append(answer)
            case .writeAgain, .released: break
            }
        }
        return (writes, answers)
    }

    @Test func `answers once Kafka has the record`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(17), in: 0, as: 1, now: Self.now)
        let (writes, early) = Self.split(arbiter.takeActions())
        #expect(writes.count == 1 && early.isEmpty)
        arbiter.reported(writes[0], offset: 4)
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 17, registeredAt: Self.now, isRetry: false)
            ])
        #expect(arbiter.registrations == 1)
    }

    @Test func `what it writes has the content that it is read back with`() throws {
        let subjects = [
            "door-42", #"a "quoted" one \ and / more"#, "tab\tline\nbell\u{7}\u{1f}",
            "Tür 🚪 e\u{301}",
            "\u{2028}\u{7f}", String(repeating: "x", count: 256),
        ]
        for count in 0...subjects.count {
            let targets = subjects.prefix(count).enumerated().map { index, subject in
                RegistrationDraft.Target(
                    tokenClass: index.isMultiple(of: 2) ? .control : .device,
                    token: [UInt8(index), 255],
                    shows: [
                        .init(kind: index == 1 ? nil : "kind \(subject)", subjects: [subject, "b"])
                    ])
            }
            let put = RegistrationArbiter.Put(
                key: Self.key, handler: "Garage", tokenClass: .controls, sequence: 1,
                targets: targets)
            var arbiter = Self.owner()
            arbiter.put(put, in: 0, as: 1, now: Self.now)
            guard case .write(let record)? = arbiter.takeActions().first, let value = record.value
            else {
                Issue.record("nothing is written")
                continue
            }
            var parser = JSONParser(bytesMax: 1 << 16)
            let read = value.withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
            #expect(read?.content == put.content, "\(String(decoding: value, as: UTF8.self))")
        }
    }

    @Test func `refuses what is stale`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        arbiter.put(Self.put(16), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(17, content: 2), in: 0, as: 2, now: Self.now)
        let (writes, answers) = Self.split(arbiter.takeActions())
        #expect(writes.isEmpty && answers == [.stale(stored: 17), .stale(stored: 17)])
    }

    @Test func `refuses what is older than a write under way`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(18), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(17), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers == [.stale(stored: 18)])
    }

    @Test func `writes a retry once`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(17), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(17), in: 0, as: 2, now: Self.now)
        let (writes, early) = Self.split(arbiter.takeActions())
        #expect(writes.count == 1 && early.isEmpty, "the retry waits for the first")
        arbiter.reported(writes[0], offset: 0)
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 17, registeredAt: Self.now, isRetry: false),
                .accepted(sequence: 17, registeredAt: Self.now, isRetry: true),
            ])
        arbiter.put(Self.put(17), in: 0, as: 3, now: Self.now)
        let (again, answers) = Self.split(arbiter.takeActions())
        #expect(again.isEmpty)
        #expect(answers == [.accepted(sequence: 17, registeredAt: nil, isRetry: true)])
    }

    @Test func `takes a write that Kafka did not acknowledge again`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(17), in: 0, as: 1, now: Self.now)
        arbiter.reported(Self.split(arbiter.takeActions()).writes[0], offset: nil)
        #expect(Self.split(arbiter.takeActions()).answers == [.unacknowledged])
        arbiter.put(Self.put(17), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).writes.count == 1)
    }

    @Test func `finds a write in the log that was not acknowledged`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(17), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(3, handler: "Lights"), in: 0, as: 2, now: Self.now)
        let writes = Self.split(arbiter.takeActions()).writes
        arbiter.reported(writes[0], offset: nil)
        arbiter.reported(writes[1], offset: 5)
        arbiter.take(Self.record(17, at: 4))
        arbiter.take(Self.record(3, at: 5, handler: "Lights"))
        #expect(arbiter.registrations == 2)
    }

    @Test func `counts on where the sequence is left out`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(nil), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(nil, content: 2), in: 0, as: 2, now: Self.now)
        for ticket in Self.split(arbiter.takeActions()).writes {
            arbiter.reported(ticket, offset: 0)
        }
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 0, registeredAt: Self.now, isRetry: false),
                .accepted(sequence: 1, registeredAt: Self.now, isRetry: false),
            ])
    }

    @Test
    func
        `does not bring back what was removed for a record that is read later than it was written`()
    {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        arbiter.remove(RegistrationArbiter.Removal(key: Self.key, handler: "Garage"), in: 0, as: 1)
        arbiter.reported(Self.split(arbiter.takeActions()).writes[0], offset: 5)
        arbiter.take(Self.record(18, at: 4))
        #expect(arbiter.registrations == 0)
        // The removal itself, and what follows it.
        arbiter.take(Self.tombstone(at: 5))
        arbiter.take(Self.record(1, at: 6))
        #expect(arbiter.registrations == 1)
    }

    @Test func `keeps no handlers name of a partition that is read anew`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        #expect(arbiter.handlers.count == 1)
        // The group has expelled the replica and let it in again, and nobody has said so.
        arbiter.assigned(0, logEnd: 0)
        #expect(arbiter.registrations == 0 && arbiter.handlers.count == 0)
    }

    @Test func `forgets the sequence of what is removed`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        arbiter.remove(RegistrationArbiter.Removal(key: Self.key, handler: "Garage"), in: 0, as: 1)
        arbiter.reported(Self.split(arbiter.takeActions()).writes[0], offset: 1)
        #expect(Self.split(arbiter.takeActions()).answers == [.removed])
        #expect(arbiter.registrations == 0)
        arbiter.put(Self.put(2), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).writes.count == 1)
    }

    @Test func `removes nothing newer than asked`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        let removal = RegistrationArbiter.Removal(key: Self.key, handler: "Garage", below: 17)
        arbiter.remove(removal, in: 0, as: 1)
        #expect(Self.split(arbiter.takeActions()).answers == [.stale(stored: 17)])
    }

    @Test func `tells nobody of a removal before it is safe`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        let removal = RegistrationArbiter.Removal(key: Self.key, handler: "Garage")
        arbiter.remove(removal, in: 0, as: 1)
        arbiter.remove(removal, in: 0, as: 2)
        let (writes, answers) = Self.split(arbiter.takeActions())
        #expect(writes.count == 1 && answers.isEmpty)
    }

    @Test func `gives a handlers name to one class`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(17, at: 0))
        arbiter.put(Self.put(18, .widgets), in: 0, as: 1, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers == [.otherClass(.controls)])
    }

    @Test func `remembers the class of what is empty, and writes it beside the value`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(17, .widgets, isEmpty: true), in: 0, as: 1, now: Self.now)
        guard case .write(let record)? = arbiter.takeActions().first else {
            Issue.record("nothing is written")
            return
        }
        #expect(record.tokenClass == .widgets)
        arbiter.reported(record.ticket, offset: 0)
        #expect(arbiter.list(Self.key, in: [0])?.first?.summary.tokenClass == .widgets)
        arbiter.put(Self.put(18), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers.last == .otherClass(.widgets))
    }

    @Test func `bounds handlers and writes`() {
        var arbiter = Self.owner(underWayMax: 1, handlersMax: 1)
        arbiter.put(Self.put(1), in: 0, as: 1, now: Self.now)
        arbiter.put(Self.put(2), in: 0, as: 2, now: Self.now)
        let (writes, answers) = Self.split(arbiter.takeActions())
        #expect(answers == [.busy])
        arbiter.reported(writes[0], offset: 0)
        arbiter.put(Self.put(1, handler: "Lights"), in: 0, as: 3, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers.last == .tooManyHandlers)
    }

    @Test func `counts the handlers whose first writes are under way`() {
        var arbiter = Self.owner(handlersMax: 3)
        for (id, name) in ["A", "B", "A", "C", "D"].enumerated() {
            arbiter.put(
                Self.put(Int64(id + 1), handler: name), in: 0, as: UInt64(id), now: Self.now)
        }
        let (writes, answers) = Self.split(arbiter.takeActions())
        #expect(writes.count == 4 && answers == [.tooManyHandlers])
        // One whose writes have failed is none.
        arbiter.reported(writes[0], offset: nil)
        arbiter.reported(writes[2], offset: nil)
        arbiter.reported(writes[1], offset: 0)
        _ = arbiter.takeActions()
        arbiter.put(Self.put(9, handler: "D"), in: 0, as: 9, now: Self.now)
        arbiter.put(Self.put(9, handler: "E"), in: 0, as: 10, now: Self.now)
        let (more, refused) = Self.split(arbiter.takeActions())
        #expect(more.count == 1 && refused == [.tooManyHandlers])
        arbiter.reported(writes[3], offset: 1)
        arbiter.reported(more[0], offset: 2)
        _ = arbiter.takeActions()
        #expect(arbiter.registrations == 3)
        arbiter.put(Self.put(9, handler: "E"), in: 0, as: 11, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers == [.tooManyHandlers])
    }

    // MARK: Owners

    @Test func `writes nothing before it has read the partition`() {
        var arbiter = RegistrationArbiter(writer: 7, seed: 1)
        arbiter.put(Self.put(1), in: 0, as: 1, now: Self.now)
        arbiter.assigned(0, logEnd: 0)
        arbiter.put(Self.put(1), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers == [.notOwner, .notOwner])
        #expect(arbiter.list(Self.key, in: [0]) == nil)
    }

    @Test func `gives a partition back once its writes have ended`() {
        var arbiter = Self.owner()
        arbiter.put(Self.put(1), in: 0, as: 1, now: Self.now)
        let writes = Self.split(arbiter.takeActions()).writes
        arbiter.revoking(0)
        #expect(arbiter.takeActions().isEmpty)
        arbiter.put(Self.put(2), in: 0, as: 2, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).answers == [.notOwner])
        arbiter.reported(writes[0], offset: 3)
        let actions = arbiter.takeActions()
        #expect(Self.split(actions).answers.count == 1)
        guard case .released(0) = actions.last else {
            Issue.record("it is not released")
            return
        }
        #expect(arbiter.registrations == 0)
    }

    @Test func `writes the newer again after a former owners stale one`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(18, at: 4))
        arbiter.take(Self.record(17, at: 5, owner: Self.former))
        guard
            case .writeAgain(let key, "Garage", partition: 0, offset: 4)? = arbiter.takeActions()
                .last
        else {
            Issue.record("nothing is written again")
            return
        }
        arbiter.writeAgain(key, handler: "Garage", partition: 0, offset: 4, value: [1])
        let writes = Self.split(arbiter.takeActions()).writes
        #expect(writes.count == 1 && arbiter.writtenAgain == 1)
        arbiter.reported(writes[0], offset: 6)
        arbiter.put(Self.put(18), in: 0, as: 1, now: Self.now)
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 18, registeredAt: nil, isRetry: true)
            ])
    }

    @Test func `writes the newer again once more if that has failed`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(18, at: 4))
        arbiter.take(Self.record(17, at: 5, owner: Self.former))
        guard case .writeAgain(let key, _, _, _)? = arbiter.takeActions().last else {
            Issue.record("nothing is written again")
            return
        }
        arbiter.writeAgain(key, handler: "Garage", partition: 0, offset: 4, value: [1])
        let writes = Self.split(arbiter.takeActions()).writes
        arbiter.reported(writes[0], offset: nil)
        let isAskedAgain = arbiter.takeActions().contains {
            if case .writeAgain(_, "Garage", partition: 0, offset: 4) = $0 { true } else { false }
        }
        #expect(isAskedAgain)
    }

    @Test func `writes a retry while an older record is the last, and says so once it is safe`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(18, at: 4))
        arbiter.take(Self.record(17, at: 5, owner: Self.former))
        _ = arbiter.takeActions()
        arbiter.put(Self.put(18), in: 0, as: 1, now: Self.now)
        let (writes, early) = Self.split(arbiter.takeActions())
        #expect(writes.count == 1 && early.isEmpty)
        arbiter.reported(writes[0], offset: 6)
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 18, registeredAt: Self.now, isRetry: false)
            ])
        // What was read meanwhile to be written again is not needed any more.
        arbiter.writeAgain(Self.key, handler: "Garage", partition: 0, offset: 4, value: [1])
        #expect(arbiter.takeActions().isEmpty && arbiter.writtenAgain == 0)
    }

    @Test func `asks again for what could not be read, while it is wanted`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(18, at: 4))
        arbiter.take(Self.record(17, at: 5, owner: Self.former))
        _ = arbiter.takeActions()
        func isAsked() -> Bool {
            arbiter.askAgain(Self.key, handler: "Garage", partition: 0)
            return arbiter.takeActions().contains {
                if case .writeAgain(_, "Garage", partition: 0, offset: 4) = $0 {
                    true
                } else {
                    false
                }
            }
        }
        let first = isAsked()
        let second = isAsked()
        arbiter.take(Self.record(19, at: 6))
        let third = isAsked()
        #expect(first && second && !third)
    }

    @Test func `lets an operator write a lower sequence`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(18, at: 4))
        arbiter.take(Self.record(2, at: 5, owner: nil))
        #expect(arbiter.takeActions().isEmpty)
        arbiter.put(Self.put(3), in: 0, as: 1, now: Self.now)
        #expect(Self.split(arbiter.takeActions()).writes.count == 1)
    }

    @Test func `lists an installations handlers`() throws {
        var arbiter = Self.owner()
        arbiter.take(Self.record(1, at: 0, handler: "Lights"))
        arbiter.take(Self.record(2, at: 1))
        let listed = try #require(arbiter.list(Self.key, in: [0]))
        #expect(listed.map(\.handler) == ["Garage", "Lights"])
        #expect(listed.map(\.offset) == [1, 0])
    }

    @Test func `forgets a partition that is lost`() {
        var arbiter = Self.owner()
        arbiter.take(Self.record(1, at: 0))
        arbiter.put(Self.put(2), in: 0, as: 1, now: Self.now)
        let writes = Self.split(arbiter.takeActions()).writes
        arbiter.lost(0)
        arbiter.reported(writes[0], offset: 1)
        #expect(
            Self.split(arbiter.takeActions()).answers == [
                .accepted(sequence: 2, registeredAt: Self.now, isRetry: false)
            ])
        #expect(arbiter.registrations == 0 && arbiter.underWay == 0)
    }
}
