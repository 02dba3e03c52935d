// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Restriction format` {
    private static let value =
        #"{"v":1,"action":"pause","by":"anna","at":"2026-11-21T06:12:00.123Z"}"#

    private func decode(
        _ key: [UInt8], _ value: String? = Self.value
    ) throws -> (scope: Restriction.Scope, restriction: Restriction?) {
        var decoder = RestrictionDecoder()
        return try key.withUnsafeBytes { key in
            guard let value else { return try decoder.decode(key: key, value: nil) }
            return try Array(value.utf8).withUnsafeBytes { value in
                try decoder.decode(key: key, value: value)
            }
        }
    }

    private static let scopes: [Restriction.Scope] = [
        .pushes(app: "com.example.Home", tokenClass: nil),
        .pushes(app: nil, tokenClass: .widget),
        .pushes(app: "com.example.Home", tokenClass: .device),
        .subject(Array("floor/2/door".utf8), app: "com.example.Home"),
        .subject([0xFF, 0x2F, 0x00], app: "com.example.Home"),
        .topic("lamplighter.events"), .rollout(app: "com.example.Home"),
    ]

    @Test(arguments: scopes) func `each scope's key leads back to it`(scope: Restriction.Scope)
        throws
    {
        let (found, restriction) = try decode(RecordKey.restriction(scope), nil)
        #expect(found == scope && restriction == nil)
    }

    @Test(arguments: [
        "", "app", "app/", "app//class/control", "class/phone", "class/control/app/a", "topic/",
        "app/a/class/phone", "app/a/subject/", "app/a b", "kind/a", "app/a/rollouts",
        "app//rollout", "app/a/rollout/b", "app/a/kind/b",
        "topic/\(String(repeating: "t", count: 250))",
        "app/a/subject/\(String(repeating: "s", count: 257))",
    ])
    func `another key is refused`(key: String) {
        #expect(throws: UnreadableRecord.self) { try decode(Array(key.utf8)) }
    }

    private static let rollout = Rollout(
        [
            Rollout.Step(percent: 0, from: WallTime(milliseconds: 1_794_000_000_000)),
            Rollout.Step(percent: 10, from: WallTime(milliseconds: 1_795_000_000_000)),
        ], of: TokenClassSet(.device), tokens: [0x4BF5_122F_3445_54C5, 7])

    @Test func `a rollout is read as it is written, of an app alone`() throws {
        let restriction = Restriction(
            .rollout(Self.rollout), by: "anna", at: WallTime(milliseconds: 1_794_999_000_000))
        let value = String(decoding: RestrictionEncoder.value(restriction), as: UTF8.self)
        #expect(value.contains(#""tokens":["4bf5122f344554c5","0000000000000007"]"#))
        #expect(try decode(Array("app/a/rollout".utf8), value).restriction == restriction)
        for key in ["app/a", "class/control", "topic/t", "app/a/subject/s"] {
            #expect(throws: UnreadableRecord.self) { try decode(Array(key.utf8), value) }
        }
        #expect(throws: UnreadableRecord.self) { try decode(Array("app/a/rollout".utf8)) }
    }

    @Test(arguments: [
        (#""percent":10"#, #""percent":101"#), (#""percent":10"#, #""percent":-1"#),
        (#""percent":10"#, #""percent":"10""#), ("2026-11-18T", "2025-11-18T"),
        (#"["device"]"#, "[]"), (#"["device"]"#, #"["phone"]"#),
        (#"["4bf5122f344554c5","0000000000000007"]"#, "[]"),
        ("4bf5122f344554c5", "4bf5122f344554c"), ("4bf5122f344554c5", "4bf5122f344554cx"),
        (#""by""#, #""until":"2026-11-21T06:12:00Z","by""#),
    ])
    func `a rollout that is none is refused`(part: String, other: String) throws {
        let restriction = Restriction(
            .rollout(Self.rollout), by: "anna", at: WallTime(milliseconds: 1_794_999_000_000))
        let value = String(decoding: RestrictionEncoder.value(restriction), as: UTF8.self)
        try #require(value.contains(part), "\(value)")
        let broken = value.replacing(part, with: other, maxReplacements: 1)
        #expect(throws: UnreadableRecord.self) {
            try decode(Array("app/a/rollout".utf8), broken)
        }
    }

    @Test func `a rollout has a bound of steps and of tokens`() throws {
        let from = WallTime(milliseconds: 1_795_000_000_000)
        func value(steps: Int, tokens: Int) -> String {
            let rollout = Rollout(
                (0..<steps).map { Rollout.Step(percent: 1, from: from + .seconds($0)) },
                of: [TokenClassSet(.device)], tokens: (0..<tokens).map { UInt64($0) })
            return String(
                decoding: RestrictionEncoder.value(
                    Restriction(.rollout(rollout), by: "anna", at: from)), as: UTF8.self)
        }
        let key = Array("app/a/rollout".utf8)
        _ = try decode(key, value(steps: 16, tokens: 100))
        for (steps, tokens) in [(17, 1), (1, 101)] {
            #expect(throws: UnreadableRecord.self) {
                try decode(key, value(steps: steps, tokens: tokens))
            }
        }
    }

    @Test func `a token's number is what other languages make of it`() {
        // Of 01, 04, 05 and 010203, by Python's hashlib.
        let hashes: [UInt64] = [
            0x4BF5_122F_3445_54C5, 0xE52D_9C50_8C50_2347, 0xE77B_9A9A_E9E3_0B0D,
            0x0390_58C6_F2C0_CB49,
        ]
        #expect(hashes.map(Rollout.number) == [75, 0, 2, 58])
    }

    @Test func `what is written is read`() throws {
        for action in [Restriction.Action.pause, .drop, .limit(perSecond: 70)] {
            var restriction = Restriction(
                action, by: "anna", at: WallTime(milliseconds: 1_795_000_000_000))
            restriction.reason = "the backend is slow"
            restriction.until = WallTime(milliseconds: 1_795_000_100_000)
            let value = String(decoding: RestrictionEncoder.value(restriction), as: UTF8.self)
            #expect(try decode(Array("app/a".utf8), value).restriction == restriction)
        }
    }

    @Test(arguments: [
        ("app/a", #"{"v":2,"action":"pause","by":"anna","at":"2026-11-21T06:12:00Z"}"#),
        ("app/a", #"{"v":1,"action":"stop","by":"anna","at":"2026-11-21T06:12:00Z"}"#),
        ("app/a", #"{"v":1,"action":"limit","by":"anna","at":"2026-11-21T06:12:00Z"}"#),
        ("app/a", #"{"v":1,"action":"limit","perSecond":0,"by":"a","at":"2026-11-21T06:12:00Z"}"#),
        ("app/a", #"{"v":1,"action":"pause","at":"2026-11-21T06:12:00Z"}"#),
        ("app/a", #"{"v":1,"action":"pause","by":"anna"}"#),
        (
            "app/a",
            #"{"v":1,"action":"pause","by":"planning.restrictions","at":"2026-11-21T06:12:00Z"}"#
        ),
        ("app/a", ""), ("app/a", "[]"), ("app/a", "{"),
        (
            "topic/t",
            #"{"v":1,"action":"limit","perSecond":9,"by":"a","at":"2026-11-21T06:12:00Z"}"#
        ),
        ("app/a/subject/s", value),
    ])
    func `what is no restriction is refused`(key: String, value: String) {
        #expect(throws: UnreadableRecord.self) { try decode(Array(key.utf8), value) }
    }
}
