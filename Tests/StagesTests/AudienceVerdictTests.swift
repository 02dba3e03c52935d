// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

@Suite struct `A verdict` {
    @Test func `suppresses registrations not later than its own`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        #expect(audience.isSuppressed(token) == false)
        #expect(audience.apply(verdictAt: 9, "t1") == true)
        #expect(audience.isSuppressed(token) == false)
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        #expect(audience.isSuppressed(token) == true)
        #expect(audience.verdictRegisteredAt(token)?.milliseconds == 10)
    }

    @Test func `is lifted by a later registration, also one repeated word for word`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        audience.apply(Fixture.registration("a", at: 11, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(token) == false)
    }

    @Test func `older than the known one, or the same, changes nothing`() {
        var audience = Fixture.audience()
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        #expect(audience.apply(verdictAt: 9, "t1") == false)
        #expect(audience.apply(verdictAt: 10, "t1") == false)
        #expect(audience.verdictRegisteredAt(audience.token(named: "t1")!)?.milliseconds == 10)
        #expect(audience.apply(verdictAt: 1, "") == false)
    }

    @Test func `may come before the registration it speaks of`() {
        var audience = Fixture.audience()
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        audience.checkInvariants()
        #expect(audience.statistics.tokens == 0)
        #expect(audience.statistics.verdicts == 1)
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == true)
        audience.apply(Fixture.registration("a", at: 12, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
        audience.checkInvariants()
    }

    @Test func `outlives the registration it speaks of`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        audience.setPending(audience.token(named: "t1")!, 3)
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        audience.apply(Fixture.registration("a", []))
        audience.reclaimRemoved()
        audience.checkInvariants()
        // An older registration of the same token, read late, is still suppressed.
        audience.apply(Fixture.registration("b", at: 8, [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        #expect(audience.isSuppressed(token) == true)
        #expect(audience.registeredAt(of: token).milliseconds == 8)
        #expect(audience.pending(token) == 0)
    }

    @Test func `speaks of one lane only`() {
        var audience = Fixture.audience()
        let rows = [ShownRow("t1", "door-1")]
        audience.apply(Fixture.registration("a", environment: .production, at: 1, rows))
        audience.apply(Fixture.registration("b", environment: .development, at: 1, rows))
        let sandbox = Fixture.lane(Fixture.home, .control, .development)
        #expect(audience.apply(verdictAt: 1, "t1", lane: sandbox) == true)
        #expect(audience.isSuppressed(audience.token(named: "t1", lane: sandbox)!) == true)
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
    }

    @Test func `that is revoked is forgotten`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        #expect(audience.apply(verdictAt: 10, "t1") == true)
        #expect(audience.apply(verdictAt: 10, "t2") == true)
        #expect(audience.revokeVerdict("t1") == true)
        #expect(audience.revokeVerdict("t2") == true)
        #expect(audience.revokeVerdict("t2") == false)
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
        #expect(audience.verdictRegisteredAt(audience.token(named: "t1")!) == nil)
        #expect(audience.token(named: "t2") == nil)
        #expect(audience.statistics.verdicts == 0)
        audience.checkInvariants()
    }
}
