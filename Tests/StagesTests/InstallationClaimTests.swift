// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Simdjson
import Testing

@testable import RegistrarRules

private typealias Desk = `A registration desk`

@Suite struct `Installation claims` {
    private static let end = Desk.now + .seconds(3600)

    private static func claim(_ key: String, until: WallTime = end) -> InstallationClaim {
        InstallationClaim(key: Desk.key, attestedKey: key, until: until)
    }

    /// Claims, and has Kafka take it.
    private static func claim(
        _ key: String, until: WallTime = end, _ desk: inout RegistrationDesk, at offset: Int64,
        now: WallTime = Desk.now
    ) -> RegistrationDesk.Answer? {
        desk.claim(claim(key, until: until), in: 0, as: 1, now: now)
        let (writes, answers) = Desk.split(desk.takeActions())
        for ticket in writes { desk.reported(ticket, offset: offset) }
        return answers.first ?? Desk.split(desk.takeActions()).answers.first
    }

    private static func isAccepted(_ answer: RegistrationDesk.Answer?) -> Bool {
        if case .accepted = answer { true } else { false }
    }

    @Test func `the first key has it, again and again, and no other until its end`() {
        var desk = Desk.owner()
        #expect(Self.isAccepted(Self.claim("A", &desk, at: 0)))
        #expect(Self.claim("B", &desk, at: 1) == .claimed(until: Self.end))
        #expect(Self.isAccepted(Self.claim("A", &desk, at: 1)))
        let later = Self.end + .seconds(60)
        let last = Self.end + .milliseconds(-1)
        // To be asked for again within the same term does not make it longer than it was wanted.
        guard case .claimed(let end) = Self.claim("B", until: later, &desk, at: 2, now: last) else {
            Issue.record("it was given away")
            return
        }
        #expect(end <= Self.end + .milliseconds(1))
        #expect(Self.isAccepted(Self.claim("B", until: later, &desk, at: 2, now: end)))
        #expect(Self.claim("A", &desk, at: 3, now: end) == .claimed(until: later))
    }

    @Test func `one that is under way counts`() {
        var desk = Desk.owner()
        desk.claim(Self.claim("A"), in: 0, as: 1, now: Desk.now)
        desk.claim(Self.claim("B"), in: 0, as: 2, now: Desk.now)
        #expect(Desk.split(desk.takeActions()).answers == [.claimed(until: Self.end)])
    }

    @Test func `it is read back from its record`() throws {
        var desk = Desk.owner()
        desk.claim(Self.claim("A+/="), in: 0, as: 1, now: Desk.now)
        guard case .write(let record)? = desk.takeActions().first else {
            Issue.record("nothing is written")
            return
        }
        #expect(record.key == Desk.key.recordKey(handler: "default.attest"))
        var parser = JSONParser(bytesMax: 1 << 16)
        let value = try #require(record.value)
        let read = value.withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
        let summary = try #require(read)
        var next = Desk.owner()
        next.take(
            RegistrationDesk.Record(
                partition: 0, offset: 0, key: Desk.key, handler: InstallationClaim.handler,
                summary: summary, owner: Desk.former))
        #expect(Self.claim("B", &next, at: 1) == .claimed(until: Self.end))
        #expect(Self.isAccepted(Self.claim("A+/=", &next, at: 1)))
    }

    @Test func `it goes with its record, and is nobody's where the partition is another's`() {
        var desk = Desk.owner()
        _ = Self.claim("A", &desk, at: 0)
        desk.take(Desk.tombstone(at: 1, handler: InstallationClaim.handler))
        #expect(Self.isAccepted(Self.claim("B", &desk, at: 2)))
        desk.lost(0)
        #expect(Self.claim("B", &desk, at: 3) == .notOwner)
    }

    @Test func `no handler is called as its record is`() {
        #expect(!RegistrationClass.isHandlerName(InstallationClaim.handler))
        #expect(RegistrationClass.isHandlerName("attest"))
    }

    @Test func `replicas tell each other of it`() throws {
        let json = #"{"attestedKey":"A","until":1800003600000}"#
        #expect(ClaimBody(Self.claim("A")).json == Array(json.utf8))
        #expect(try Self.read(json).claim(of: Desk.key) == Self.claim("A"))
    }

    @Test(arguments: [
        #"{}"#, #"{"attestedKey":"A"}"#, #"{"until":5}"#, #"{"attestedKey":1,"until":5}"#,
        #"{"attestedKey":"A","until":-1}"#, #"{"attestedKey":"A","until":9007199254740992}"#,
    ])
    func `what is no claim is refused`(json: String) {
        #expect(throws: InvalidMember.self) { try Self.read(json) }
    }

    private static func read(_ json: String) throws(InvalidMember) -> ClaimBody {
        var parser = JSONParser(bytesMax: 1 << 16)
        return try Array(json.utf8).withUnsafeBytes { bytes in
            Result { () throws(InvalidMember) in
                try ClaimBody(SnapshotReader.object(in: bytes, parser: &parser))
            }
        }.get()
    }
}
