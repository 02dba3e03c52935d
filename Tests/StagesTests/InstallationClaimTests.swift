// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Simdjson
import Testing

@testable import RegistrarRules

private typealias Arbiter = `A registration arbiter`

@Suite struct `Installation claims` {
    private static let end = Arbiter.now + .seconds(3600)

    private static func claim(_ key: String, until: WallTime = end) -> InstallationClaim {
        InstallationClaim(key: Arbiter.key, attestedKey: key, until: until)
    }

    /// Claims, and has Kafka take it.
    private static func claim(
        _ key: String, until: WallTime = end, _ arbiter: inout RegistrationArbiter,
        at offset: Int64,
        now: WallTime = Arbiter.now
    ) -> RegistrationArbiter.Answer? {
        arbiter.claim(claim(key, until: until), in: 0, as: 1, now: now)
        let (writes, answers) = Arbiter.split(arbiter.takeActions())
        for ticket in writes { arbiter.reported(ticket, offset: offset) }
        return answers.first ?? Arbiter.split(arbiter.takeActions()).answers.first
    }

    private static func isAccepted(_ answer: RegistrationArbiter.Answer?) -> Bool {
        if case .accepted = answer { true } else { false }
    }

    @Test func `the first key has it, again and again, and no other until its end`() {
        var arbiter = Arbiter.owner()
        #expect(Self.isAccepted(Self.claim("A", &arbiter, at: 0)))
        #expect(Self.claim("B", &arbiter, at: 1) == .claimed(until: Self.end))
        #expect(Self.isAccepted(Self.claim("A", &arbiter, at: 1)))
        let later = Self.end + .seconds(60)
        let last = Self.end + .milliseconds(-1)
        // To be asked for again within the same term does not make it longer than it was wanted.
        guard case .claimed(let end) = Self.claim("B", until: later, &arbiter, at: 2, now: last)
        else {
            Issue.record("it was given away")
            return
        }
        #expect(end <= Self.end + .milliseconds(1))
        #expect(Self.isAccepted(Self.claim("B", until: later, &arbiter, at: 2, now: end)))
        #expect(Self.claim("A", &arbiter, at: 3, now: end) == .claimed(until: later))
    }

    @Test func `one that is under way counts`() {
        var arbiter = Arbiter.owner()
        arbiter.claim(Self.claim("A"), in: 0, as: 1, now: Arbiter.now)
        arbiter.claim(Self.claim("B"), in: 0, as: 2, now: Arbiter.now)
        #expect(Arbiter.split(arbiter.takeActions()).answers == [.claimed(until: Self.end)])
    }

    @Test func `it is read back from its record`() throws {
        var arbiter = Arbiter.owner()
        arbiter.claim(Self.claim("A+/="), in: 0, as: 1, now: Arbiter.now)
        guard case .write(let record)? = arbiter.takeActions().first else {
            Issue.record("nothing is written")
            return
        }
        #expect(record.key == Arbiter.key.recordKey(handler: "default.attest"))
        var parser = JSONParser(bytesMax: 1 << 16)
        let value = try #require(record.value)
        let read = value.withUnsafeBytes { RegistrationSummary(value: $0, parser: &parser) }
        let summary = try #require(read)
        var next = Arbiter.owner()
        next.take(
            RegistrationArbiter.Record(
                partition: 0, offset: 0, key: Arbiter.key, handler: InstallationClaim.handler,
                summary: summary, owner: Arbiter.former))
        #expect(Self.claim("B", &next, at: 1) == .claimed(until: Self.end))
        #expect(Self.isAccepted(Self.claim("A+/=", &next, at: 1)))
    }

    @Test func `it goes with its record, and is nobody's where the partition is another's`() {
        var arbiter = Arbiter.owner()
        _ = Self.claim("A", &arbiter, at: 0)
        arbiter.take(Arbiter.tombstone(at: 1, handler: InstallationClaim.handler))
        #expect(Self.isAccepted(Self.claim("B", &arbiter, at: 2)))
        arbiter.lost(0)
        #expect(Self.claim("B", &arbiter, at: 3) == .notOwner)
    }

    @Test func `no handler is called as its record is`() {
        #expect(!RegistrationClass.isHandlerName(InstallationClaim.handler))
        #expect(RegistrationClass.isHandlerName("attest"))
    }

    @Test func `replicas tell each other of it`() throws {
        let json = #"{"attestedKey":"A","until":1800003600000}"#
        #expect(ClaimBody(Self.claim("A")).json == Array(json.utf8))
        #expect(try Self.read(json).claim(of: Arbiter.key) == Self.claim("A"))
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
