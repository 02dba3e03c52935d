// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import PushModel
internal import Testing

private typealias Fixture = AudienceFixture

@Suite struct `A suppression in an audience` {
    @Test func `a suppression suppresses registrations not later than its own`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        #expect(audience.isSuppressed(token) == false)
        #expect(audience.apply(suppressionAt: 9, "t1") == true)
        #expect(audience.isSuppressed(token) == false)
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
        #expect(audience.isSuppressed(token) == true)
        #expect(audience.suppressionRegisteredAt(token)?.milliseconds == 10)
    }

    @Test func `a suppression is lifted by a later registration, also one repeated word for word`()
    {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        let token = audience.token(named: "t1")!
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
        audience.apply(Fixture.registration("a", at: 11, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(token) == false)
    }

    @Test func `a suppression older than the known one, or the same, changes nothing`() {
        var audience = Fixture.audience()
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
        #expect(audience.apply(suppressionAt: 9, "t1") == false)
        #expect(audience.apply(suppressionAt: 10, "t1") == false)
        #expect(audience.suppressionRegisteredAt(audience.token(named: "t1")!)?.milliseconds == 10)
        #expect(audience.apply(suppressionAt: 1, "") == false)
    }

    @Test func `a suppression may come before the registration it speaks of`() {
        var audience = Fixture.audience()
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
        audience.checkInvariants()
        #expect(audience.statistics.tokens == 0)
        #expect(audience.statistics.suppressions == 1)
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == true)
        audience.apply(Fixture.registration("a", at: 12, [ShownRow("t1", "door-1")]))
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
        audience.checkInvariants()
    }

    @Test func `a suppression outlives the registration it speaks of`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        audience.setPending(audience.token(named: "t1")!, 3)
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
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

    @Test func `a suppression speaks of one route only`() {
        var audience = Fixture.audience()
        let rows = [ShownRow("t1", "door-1")]
        audience.apply(Fixture.registration("a", environment: .production, at: 1, rows))
        audience.apply(Fixture.registration("b", environment: .development, at: 1, rows))
        let sandbox = Fixture.route(Fixture.home, .control, .development)
        #expect(audience.apply(suppressionAt: 1, "t1", route: sandbox) == true)
        #expect(audience.isSuppressed(audience.token(named: "t1", route: sandbox)!) == true)
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
    }

    @Test func `a suppression that is revoked is forgotten`() {
        var audience = Fixture.audience()
        audience.apply(Fixture.registration("a", at: 10, [ShownRow("t1", "door-1")]))
        #expect(audience.apply(suppressionAt: 10, "t1") == true)
        #expect(audience.apply(suppressionAt: 10, "t2") == true)
        #expect(audience.revokeSuppression("t1") == true)
        #expect(audience.revokeSuppression("t2") == true)
        #expect(audience.revokeSuppression("t2") == false)
        #expect(audience.isSuppressed(audience.token(named: "t1")!) == false)
        #expect(audience.suppressionRegisteredAt(audience.token(named: "t1")!) == nil)
        #expect(audience.token(named: "t2") == nil)
        #expect(audience.statistics.suppressions == 0)
        audience.checkInvariants()
    }

    @Test func `a suppression keeps the answer that led to it, and when it was recorded`() {
        var audience = Fixture.audience()
        #expect(Self.suppress("Unregistered", registeredAt: 5, at: 7_400, &audience))
        let token = audience.token(named: "t1")!
        let expected = RecordedSuppression(
            status: 410, reason: "Unregistered", registeredAt: WallTime(milliseconds: 5),
            recordedAt: WallTime(milliseconds: 7_000))
        #expect(audience.suppression(of: token) == expected)
        // The same answer, read back later.
        #expect(!Self.suppress("Other", registeredAt: 5, at: 9_000, &audience))
        #expect(audience.suppression(of: token) == expected)
        #expect(Self.suppress("Other", registeredAt: 6, at: -1, &audience))
        #expect(audience.suppression(of: token)?.reason == "Other")
        #expect(audience.suppression(of: token)?.recordedAt == nil)
        // Whoever writes hundreds of reasons gets suppressions without one.
        for number in 7..<400 as Range<Int64> {
            #expect(Self.suppress("reason-\(number)", registeredAt: number, at: 1, &audience))
        }
        #expect(audience.suppression(of: token)?.reason == "")
        #expect(audience.suppression(of: token)?.registeredAt == WallTime(milliseconds: 399))
    }

    private static func suppress(
        _ reason: String, registeredAt: Int64, at time: Int64, _ audience: inout Audience
    ) -> Bool {
        let suppression = Suppression(
            status: 410, reason: reason, apnsTimestamp: nil,
            registeredAt: WallTime(milliseconds: registeredAt))
        return Array("t1".utf8).withUnsafeBytes {
            audience.apply(
                suppression: suppression, recordedAt: WallTime(milliseconds: time),
                route: Fixture.route(), token: $0)
        }
    }
}
