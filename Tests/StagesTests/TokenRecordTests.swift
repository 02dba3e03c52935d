// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Token records` {
    private static let routing = IntakeFixtures.routing()

    private func suppression(
        _ value: String?, key: String = IntakeSamples.tokenKey,
        timestamp: WallTime = IntakeFixtures.now
    ) throws -> (key: TokenKey, suppression: Suppression?) {
        try decode(value, key) { decoder, key, value, tokenKey in
            try decoder.suppression(
                key: key, value: value, timestamp: timestamp, into: &tokenKey)
        }
    }

    private func deferred(
        _ value: String?, key: String? = nil
    ) throws -> (key: TokenKey, push: DeferredPush?) {
        let hasPayload = value?.contains("\"payload\":{") == true
        let fitting = IntakeSamples.tokenKey + (hasPayload ? "/00000000000000ff" : "")
        return try decode(value, key ?? fitting) { decoder, key, value, tokenKey in
            try decoder.deferred(key: key, value: value, into: &tokenKey)
        }
    }

    private func decode<Value>(
        _ value: String?, _ key: String,
        _ read: (
            inout TokenRecordDecoder, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?,
            inout TokenKey
        ) throws -> Value?
    ) throws -> (TokenKey, Value?) {
        var decoder = TokenRecordDecoder(routing: Self.routing)
        var tokenKey = TokenKey()
        let result = try lending(Array(key.utf8)) { key in
            try lending(value.map { Array($0.utf8) }) { value in
                try read(&decoder, key, value, &tokenKey)
            }
        }
        return (tokenKey, result)
    }

    @Test func `a key names a route and a token`() throws {
        let controls = try suppression(nil).key
        #expect(controls.token == [0x00, 0xFC, 0x13])
        let route = Self.routing[controls.route]
        #expect(route.environment == .production)
        #expect(route.tokenClass == .control)
        let device = try suppression(nil, key: "sandbox/com.example.Home/AB").key
        #expect(Self.routing[device.route].environment == .development)
        #expect(Self.routing[device.route].tokenClass == .device)
    }

    @Test func `every route's key leads back to it`() throws {
        let token: [UInt8] = [1, 0xFF]
        for (index, route) in Self.routing.routes.enumerated() {
            let key = token.withUnsafeBufferPointer { RecordKey.token(route: route, token: $0) }
            let decoded = try suppression(nil, key: String(decoding: key, as: UTF8.self)).key
            #expect(Int(decoded.route.rawValue) == index)
            #expect(decoded.token == token)
        }
    }

    @Test(
        arguments: [
            ("", .invalidKey), ("production/com.example.Home", .invalidKey),
            ("production/com.example.Home/abc", .invalidKey),
            ("production/com.example.Home/zz", .invalidKey),
            ("production/com.example.Home/ab/cd", .invalidKey),
            ("moon/com.example.Home/ab", .invalidKey),
            ("production/com.example.Car/ab", .unknownApp),
            ("production/com.example.Home/" + String(repeating: "ab", count: 513), .invalidKey),
        ] as [(String, UnreadableCode)])
    func `a malformed key is refused`(key: String, code: UnreadableCode) {
        #expect(refusal { _ = try suppression(nil, key: key) } == code)
    }

    @Test(arguments: IntakeSamples.goodSuppressions)
    func `a well-formed suppression is read`(value: String) throws {
        let decoded = try #require(try suppression(value).suppression)
        #expect(decoded.registeredAt == WallTime(rfc3339: "2026-11-20T00:00:00Z"))
    }

    @Test(
        arguments: [
            ("2026-11-21T14:00:00Z", true), ("2026-11-21T14:00:01Z", false),
            ("2031-01-01T00:00:00Z", false), ("1970-01-01T00:00:00Z", true),
        ] as [(String, Bool)])
    func `a suppression does not outlast the registrations after its record`(
        instant: String, isTaken: Bool
    ) throws {
        let value =
            #"{"v":1,"status":410,"reason":"Unregistered","registeredAt":"\#(instant)"}"#
        let given = try #require(WallTime(rfc3339: instant))
        let found = try suppression(value).suppression?.registeredAt
        #expect(found == (isTaken ? given : IntakeFixtures.now))
        // Without a time of the record there is nothing to hold it against.
        for none in [0, -1] as [Int64] {
            let found = try suppression(value, timestamp: WallTime(milliseconds: none)).suppression
            #expect(found?.registeredAt == given)
        }
    }

    @Test(arguments: IntakeSamples.badSuppressions)
    func `a malformed suppression is refused with its reason`(value: String, code: UnreadableCode) {
        #expect(refusal { _ = try suppression(value) } == code)
    }

    @Test(arguments: IntakeSamples.goodDeferred)
    func `a well-formed deferred push is read`(value: String) throws {
        let push = try #require(try deferred(value).push)
        #expect(push.expiresAt - push.notBefore == .seconds(3600))
    }

    @Test(arguments: IntakeSamples.badDeferred)
    func `a malformed deferred push is refused with its reason`(
        value: String, code: UnreadableCode
    ) {
        #expect(refusal { _ = try deferred(value) } == code)
    }

    @Test func `a deferred push with a payload has its coalescing key in its key`() throws {
        let plain = IntakeSamples.tokenKey
        #expect(try deferred(nil, key: plain).key.coalescingKey == 0)
        #expect(try deferred(nil, key: plain + "/00000000000000ff").key.coalescingKey == 255)
        for bad in ["/ff", "/00000000000000fg", "/00000000000000ff/1"] {
            #expect(refusal { _ = try deferred(nil, key: plain + bad) } == .invalidKey)
        }
        #expect(
            refusal { _ = try suppression(nil, key: plain + "/00000000000000ff") } == .invalidKey)
        let route = Self.routing[try deferred(nil, key: plain).key.route]
        let written = [0x00, 0xFC, 0x13].withUnsafeBufferPointer {
            RecordKey.deferred(route: route, token: $0, coalescingKey: 255)
        }
        #expect(String(decoding: written, as: UTF8.self) == plain + "/00000000000000ff")
    }

    @Test func `a tombstone revokes a suppression, and ends a wait`() throws {
        #expect(try suppression(nil).suppression == nil)
        #expect(try deferred(nil).push == nil)
    }

    @Test(arguments: [nil, WallTime(milliseconds: 1_795_241_520_123)])
    func `what the encoders write, the decoders read`(instant: WallTime?) throws {
        let dead = Suppression(
            status: 410, reason: "Unregistered", apnsTimestamp: instant,
            registeredAt: WallTime(milliseconds: -1))
        let written = String(decoding: SuppressionEncoder.value(dead), as: UTF8.self)
        #expect(try suppression(written).suppression == dead)

        var push = DeferredPush(
            notBefore: WallTime(milliseconds: 1), expiresAt: WallTime(milliseconds: 2),
            tokenClass: .device, attempts: 2)
        if let instant {
            push.lastSentAt = instant
            push.firstAt = instant
            push.payloadAt = instant
            push.payload = EventPayload(
                body: Array(#"{"aps":{"alert":"\n"}}"#.utf8), type: .alert)
            push.collapseID = "score 1"
            push.priority = 0
            push.expiration = .immediate
            push.source = DeadLetter.Source(topic: "events", partition: 3, offset: 7)
            push.subject = [0xFF, 0x00, 0x41]
        }
        let waiting = String(decoding: DeferredEncoder.value(push), as: UTF8.self)
        #expect(try deferred(waiting).push == push)
    }

    @Test(arguments: [31, 32] as [UInt64])
    func `random bytes are read or refused`(seed: UInt64) {
        var random = IntakeRandom(state: seed)
        var read = 0
        for _ in 0..<500 {
            let sample = (IntakeSamples.goodSuppressions + IntakeSamples.goodDeferred)
                .randomElement(using: &random)!
            let value = String(decoding: random.damaged(sample), as: UTF8.self)
            let key = String(decoding: random.damaged(IntakeSamples.tokenKey), as: UTF8.self)
            if let pair = try? suppression(value, key: key) {
                #expect((1...512).contains(pair.key.token.count))
                read += 1
            }
            if let pair = try? deferred(value, key: key), let push = pair.push {
                #expect((push.payload?.body.count ?? 0) <= 5120)
                read += 1
            }
        }
        #expect(read > 20 && read < 900)
    }
}
