// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import PushModel
internal import Testing

@Suite struct `The APNs simulator's provider tokens` {
    private static let home = SigningTeam.home

    /// The answers to pushes with these `authorization` headers on one connection.
    private func answers(
        to bearers: [String?], _ change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws -> [String] {
        let fixture = try SimulatorFixture(change)
        return try fixture.curl(bearers.map { CurlRequest(bearer: $0) }).map {
            $0.reason.isEmpty ? "\($0.status)" : $0.reason
        }
    }

    @Test func `provider tokens are refused when absent, malformed, unknown or forged`() throws {
        let forger = SigningTeam(teamID: Self.home.teamID, keyID: Self.home.keyID)
        let good = Self.home.bearer()
        let rows: [(String?, String)] = [
            (nil, "MissingProviderToken"),
            ("bearer", "InvalidProviderToken"),
            ("bearer a.b.c", "InvalidProviderToken"),
            ("basic \(good.dropFirst(7))", "InvalidProviderToken"),
            (Self.home.bearer(algorithm: "RS256"), "InvalidProviderToken"),
            (Self.home.bearer(keyID: "UNKNOWNKEY"), "InvalidProviderToken"),
            (Self.home.bearer(teamID: SigningTeam.other.teamID), "InvalidProviderToken"),
            (forger.bearer(), "InvalidProviderToken"),
            (Self.home.bearer(age: -600), "InvalidProviderToken"),
            (good, "200"), (good, "200"),
        ]
        #expect(try answers(to: rows.map(\.0)) == rows.map(\.1))
    }

    @Test func `provider tokens over an hour old wedge a connection`() throws {
        let fresh = Self.home.bearer()
        #expect(try answers(to: [Self.home.bearer(age: 3500)]) == ["200"])
        #expect(
            try answers(to: [Self.home.bearer(age: 3700), fresh])
                == ["ExpiredProviderToken", "ExpiredProviderToken"])
    }

    @Test func `a simulator's provider tokens may change on a connection once in twenty minutes`()
        throws
    {
        let first = Self.home.bearer(age: 20)
        let second = Self.home.bearer()
        let tooMany = "TooManyProviderTokenUpdates"
        #expect(try answers(to: [first, second, first]) == ["200", tooMany, tooMany])
        #expect(
            try answers(to: [first, second, first]) { $0.providerTokenUpdateMin = .zero }
                == ["200", "200", "200"])
    }

    @Test func `a simulator's provider tokens bind a connection to their team`() throws {
        #expect(
            try answers(to: [Self.home.bearer(), SigningTeam.other.bearer()])
                == ["200", "InvalidProviderToken"])
    }

    @Test func `provider tokens belong to environments, and topic-specific ones stay alone`() throws
    {
        let wrong = try answers(to: [Self.home.bearer()]) {
            $0.keys[0].environments = [.development]
        }
        #expect(wrong == ["BadEnvironmentKeyIdInToken"])

        let narrow = SigningTeam(teamID: Self.home.teamID, keyID: "NARROWKEY1")
        let bearers = [Self.home.bearer(), narrow.bearer()]
        let unrelated = try answers(to: bearers) {
            $0.keys.append(narrow.simulatorKey)
            $0.keys[2].bundleIDs = [SimulatorFixture.bundleID]
        }
        #expect(unrelated == ["200", "UnrelatedKeyIdInToken"])
        let related = try answers(to: bearers) {
            $0.providerTokenUpdateMin = .zero
            $0.keys.append(narrow.simulatorKey)
            $0.keys[2].bundleIDs = [SimulatorFixture.bundleID]
            $0.keys[2].relatedKeyID = Self.home.keyID
        }
        #expect(related == ["200", "200"])
        let elsewhere = try answers(to: [narrow.bearer()]) {
            $0.keys.append(narrow.simulatorKey)
            $0.keys[2].bundleIDs = ["com.example.Elsewhere"]
        }
        #expect(elsewhere == ["TopicDisallowed"])
    }
}
