// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Registration format` {
    private let logged = WallTime(rfc3339: "2026-11-21T10:00:00.000Z")!

    private func decode(
        _ value: String?, key: String = IntakeSamples.registrationKey, rowsMax: Int = 10_000
    ) throws -> (change: RegistrationChange, registration: Registration, skipped: UInt64) {
        var decoder = RegistrationDecoder(
            routing: IntakeFixtures.routing(), rowsMax: rowsMax)
        var registration = Registration()
        let change = try lending(Array(key.utf8)) { key in
            try lending(value.map { Array($0.utf8) }) { value in
                try decoder.decode(key: key, value: value, timestamp: logged, into: &registration)
            }
        }
        return (change, registration, decoder.skippedTargets)
    }

    @Test func `a snapshot becomes rows`() throws {
        let (change, registration, _) = try decode(
            #"""
            {"v":1,"registeredAt":"2026-11-21T06:12:00.123Z","targets":[
              {"class":"control","token":"00FC13","shows":[
                {"kind":"garage","subjects":["door-42","door-43"]},{"kind":"lamp"}]},
              {"shows":[{"subjects":["inbox"]}],"onChange":"background","token":"aa",
               "class":"device"},
              {"class":"device","token":"bb"},{"class":"widget","token":"cc"}]}
            """#)
        #expect(change == .replaced)
        #expect(registration.environment == .production)
        #expect(registration.app == AppID(rawValue: 0))
        #expect(registration.registeredAt == WallTime(rfc3339: "2026-11-21T06:12:00.123Z"))
        #expect(String(decoding: registration.key, as: UTF8.self) == IntakeSamples.registrationKey)
        #expect(
            registration.rows.map { rendered($0, of: registration) } == [
                "control+ 00fc13 garage door-42", "control+ 00fc13 garage door-43",
                "control+ 00fc13 lamp ", "device+ aa  inbox", "device- bb  ", "widget+ cc  ",
            ])
    }

    @Test(arguments: IntakeSamples.goodRegistrations)
    func `a well-formed snapshot is read`(value: String, rows: Int) throws {
        #expect(try decode(value).registration.rows.count == rows)
    }

    @Test(arguments: IntakeSamples.badRegistrations)
    func `a malformed snapshot is refused with its reason`(value: String, code: UnreadableCode) {
        #expect(refusal { _ = try decode(value) } == code)
    }

    @Test func `a channel's token is its ID in base64, and is written again as it was read`() throws
    {
        let (_, registration, _) = try decode(
            #"""
            {"v":1,"targets":[{"class":"channel","token":"dHN0LXNyY2gtY2hubA==","shows":[
              {"subjects":["match-9"]}]}]}
            """#)
        let row = try #require(registration.rows.first)
        #expect(row.tokenClass == .channel && !row.hearsChanges)
        #expect(rendered(row, of: registration) == "channel- 7473742d737263682d63686e6c  match-9")
        var draft = RegistrationDraft(
            environment: .production, app: "com.example.Home", installation: "I", handler: "H")
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .channel, token: Array("tst-srch-chnl".utf8), shows: [])
        ]
        let value = String(decoding: RegistrationEncoder.value(draft), as: UTF8.self)
        #expect(value.contains(#""token":"dHN0LXNyY2gtY2hubA==""#))
    }

    @Test(arguments: ["dHN0LXNyY2gtY2hubB==", "dHN0LXNyY2gtY2hubA", "7473742d", "____"])
    func `base64 that does not encode to itself again is no channel's ID`(token: String) {
        // Eight hexadecimal digits are base64 too, of other bytes.
        let value = #"{"v":1,"targets":[{"class":"channel","token":"\#(token)"}]}"#
        #expect(refusal { _ = try decode(value) } == (token == "7473742d" ? nil : .invalidField))
    }

    @Test func `a tombstone removes a registration`() throws {
        let (change, registration, _) = try decode(nil)
        #expect(change == .removed)
        #expect(String(decoding: registration.key, as: UTF8.self) == IntakeSamples.registrationKey)
        #expect(registration.rows.isEmpty)
    }

    @Test func `sandbox is read as development, in the key and in the body`() throws {
        let value = #"{"v":1,"environment":"development","targets":[]}"#
        let (_, registration, _) = try decode(value, key: "sandbox/com.example.Home/i/h")
        #expect(registration.environment == .development)
        #expect(
            String(decoding: registration.key, as: UTF8.self) == "development/com.example.Home/i/h")
    }

    @Test(
        arguments: [
            ("2026-11-21T06:12:00Z", true), ("1970-01-01T00:00:00Z", true),
            ("2026-11-21T11:00:00Z", true), ("2026-11-21T11:00:01Z", false),
            ("2027-11-21T10:00:00Z", false), ("9999-01-01T00:00:00Z", false),
        ] as [(String, Bool)])
    func `a snapshot's instant far after its record's is not believed`(
        instant: String, isTaken: Bool
    ) throws {
        let value = #"{"v":1,"registeredAt":"\#(instant)","targets":[]}"#
        #expect(
            try decode(value).registration.registeredAt
                == (isTaken ? WallTime(rfc3339: instant)! : logged))
        #expect(throws: UnreadableRecord.self) {
            _ = try decode(#"{"v":1,"registeredAt":1795262400000,"targets":[]}"#)
        }
    }

    @Test func `a snapshot without an instant takes the record's`() throws {
        #expect(try decode(#"{"v":1,"targets":[]}"#).registration.registeredAt == logged)
    }

    @Test func `targets of a later release are left out and counted`() throws {
        let (_, registration, skipped) = try decode(
            #"""
            {"v":1,"targets":[{"class":"hologram","token":7,"shows":"?"},
             {"class":"device","token":"ab","onChange":"sing"},{"class":"widget","token":"ab"}]}
            """#)
        #expect(skipped == 2)
        #expect(registration.rows.count == 1)
    }

    @Test(arguments: [
        "", "production", "production/com.example.Home/i", "production/com.example.Home/i/h/x",
        "production/com.example.Home//h", "production/com.example.Home/i/", "/com.example.Home/i/h",
        "moon/com.example.Home/i/h", "production/com.example.Home/i i/h",
        "production/com.example.Home/é/h",
        "production/com.example.Home/i/" + String(repeating: "h", count: 129),
    ])
    func `a malformed key is refused`(key: String) {
        #expect(refusal { _ = try decode(nil, key: key) } == .invalidKey)
    }

    @Test func `keys take 128 bytes a part, and only of apps we know`() throws {
        let part = String(repeating: "~", count: 128)
        _ = try decode(nil, key: "production/com.example.Home/\(part)/\(part)")
        #expect(refusal { _ = try decode(nil, key: "production/x/i/h") } == .unknownApp)
    }

    @Test func `tokens have up to 1024 digits, and snapshots a bounded number of rows`() throws {
        func value(token: String, subjects: Int) -> String {
            let names = (0..<subjects).map { #""s\#($0)""# }.joined(separator: ",")
            return #"{"v":1,"targets":[{"class":"control","token":"\#(token)","#
                + #""shows":[{"subjects":[\#(names)]}]}]}"#
        }
        let longest = String(repeating: "ab", count: 512)
        #expect(
            try decode(value(token: longest, subjects: 1)).registration.rows[0].token.count == 512)
        let code = refusal { _ = try decode(value(token: longest + "ab", subjects: 1)) }
        #expect(code == .invalidField)
        #expect(
            try decode(value(token: "ab", subjects: 5), rowsMax: 5).registration.rows.count == 5)
        #expect(
            refusal { _ = try decode(value(token: "ab", subjects: 6), rowsMax: 5) } == .tooManyRows)
    }

    @Test func `what the encoder writes, the decoder reads`() throws {
        var draft = RegistrationDraft(
            environment: .development, app: "com.example.Home", installation: "i", handler: "h")
        draft.sequence = 3
        draft.registeredAt = logged + .milliseconds(1)
        var device = RegistrationDraft.Target(
            tokenClass: .device, token: [0xAB], shows: [.init(kind: nil, subjects: ["a\"b"])])
        device.hearsChanges = true
        draft.targets = [
            .init(tokenClass: .control, token: [0, 1], shows: [.init(kind: "k", subjects: ["s"])]),
            .init(tokenClass: .control, token: nil, shows: []), device,
        ]
        let (_, registration, _) = try decode(
            String(decoding: RegistrationEncoder.value(draft), as: UTF8.self),
            key: String(decoding: RegistrationEncoder.key(draft), as: UTF8.self))
        #expect(registration.registeredAt == draft.registeredAt)
        #expect(
            registration.rows.map { rendered($0, of: registration) } == [
                "control+ 0001 k s", "device+ ab  a\"b",
            ])
    }

    @Test(arguments: [21, 22, 23] as [UInt64])
    func `random bytes are read or refused, within bounds`(seed: UInt64) {
        var random = IntakeRandom(state: seed)
        var decoder = RegistrationDecoder(routing: IntakeFixtures.routing(), rowsMax: 3)
        var registration = Registration()
        var outcomes = [true: 0, false: 0]
        for round in 0..<1500 {
            let sample = IntakeSamples.goodRegistrations.randomElement(using: &random)!.0
            let damaged = random.damaged(round % 4 == 0 ? IntakeSamples.registrationKey : sample)
            let key = round % 4 == 0 ? damaged : Array(IntakeSamples.registrationKey.utf8)
            lending(key) { key in
                lending(round % 4 == 0 ? Array(sample.utf8) : damaged) { value in
                    let change = try? decoder.decode(
                        key: key, value: value, timestamp: logged, into: &registration)
                    outcomes[change != nil, default: 0] += 1
                }
            }
            #expect(registration.rows.count <= 3)
            for row in registration.rows {
                for slice in [row.token, row.kind, row.subject] {
                    #expect(Int(slice.offset) + Int(slice.count) <= registration.bytes.count)
                }
            }
        }
        #expect(outcomes[true]! > 50 && outcomes[false]! > 50)
    }
}

/// `class`, `+` if it hears changes, token, kind, subject.
private func rendered(_ row: Registration.Row, of registration: Registration) -> String {
    func bytes(_ slice: Registration.Slice) -> ArraySlice<UInt8> {
        registration.bytes[Int(slice.offset)..<Int(slice.offset + slice.count)]
    }
    return [
        row.tokenClass.name + (row.hearsChanges ? "+" : "-"), Hexadecimal.encode(bytes(row.token)),
        String(decoding: bytes(row.kind), as: UTF8.self),
        String(decoding: bytes(row.subject), as: UTF8.self),
    ].joined(separator: " ")
}
