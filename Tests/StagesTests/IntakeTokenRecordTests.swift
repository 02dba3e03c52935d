// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Records keyed by token` {
    private static let routing = IntakeFixtures.routing()

    private func verdict(
        _ value: String?, key: String = IntakeSamples.tokenKey
    ) throws -> (key: TokenKey, verdict: Verdict?) {
        try decode(value, key) { decoder, key, value, tokenKey in
            try decoder.verdict(key: key, value: value, into: &tokenKey)
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

    @Test func `a key names a lane and a token`() throws {
        let controls = try verdict(nil).key
        #expect(controls.token == [0x00, 0xFC, 0x13])
        let lane = Self.routing[controls.lane]
        #expect(lane.environment == .production)
        #expect(lane.tokenClass == .control)
        let device = try verdict(nil, key: "sandbox/com.example.Home/AB").key
        #expect(Self.routing[device.lane].environment == .development)
        #expect(Self.routing[device.lane].tokenClass == .device)
    }

    @Test func `every lane's key leads back to it`() throws {
        let token: [UInt8] = [1, 0xFF]
        for (index, lane) in Self.routing.lanes.enumerated() {
            let key = token.withUnsafeBufferPointer { RecordKey.token(lane: lane, token: $0) }
            let decoded = try verdict(nil, key: String(decoding: key, as: UTF8.self)).key
            #expect(Int(decoded.lane.rawValue) == index)
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
        #expect(refusal { _ = try verdict(nil, key: key) } == code)
    }

    @Test(arguments: IntakeSamples.goodVerdicts)
    func `a well-formed verdict is read`(value: String) throws {
        let decoded = try #require(try verdict(value).verdict)
        #expect(decoded.registeredAt == WallTime(rfc3339: "2026-11-20T00:00:00Z"))
    }

    @Test(arguments: IntakeSamples.badVerdicts)
    func `a malformed verdict is refused with its reason`(value: String, code: UnreadableCode) {
        #expect(refusal { _ = try verdict(value) } == code)
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
        #expect(refusal { _ = try verdict(nil, key: plain + "/00000000000000ff") } == .invalidKey)
        let lane = Self.routing[try deferred(nil, key: plain).key.lane]
        let written = [0x00, 0xFC, 0x13].withUnsafeBufferPointer {
            RecordKey.deferred(lane: lane, token: $0, coalescingKey: 255)
        }
        #expect(String(decoding: written, as: UTF8.self) == plain + "/00000000000000ff")
    }

    @Test func `null revokes, and ends a wait`() throws {
        #expect(try verdict(nil).verdict == nil)
        #expect(try deferred(nil).push == nil)
    }

    @Test(arguments: [nil, WallTime(milliseconds: 1_795_241_520_123)])
    func `what the encoders write, the decoders read`(instant: WallTime?) throws {
        let dead = Verdict(
            status: 410, reason: "Unregistered", apnsTimestamp: instant,
            registeredAt: WallTime(milliseconds: -1))
        let written = String(decoding: VerdictEncoder.value(dead), as: UTF8.self)
        #expect(try verdict(written).verdict == dead)

        var push = DeferredPush(
            notBefore: WallTime(milliseconds: 1), expiresAt: WallTime(milliseconds: 2),
            tokenClass: .widget, attempts: 2)
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
            let sample = (IntakeSamples.goodVerdicts + IntakeSamples.goodDeferred)
                .randomElement(using: &random)!
            let value = String(decoding: random.damaged(sample), as: UTF8.self)
            let key = String(decoding: random.damaged(IntakeSamples.tokenKey), as: UTF8.self)
            if let pair = try? verdict(value, key: key) {
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

@Suite struct `Events and dead letters, written` {
    @Test func `what the encoder writes, the decoder reads`() throws {
        var draft = EventDraft()
        draft.subject = "a\u{1}\"\\é"
        draft.app = "com.example.Home"
        draft.environment = .development
        draft.kinds = ["k"]
        draft.classes = [.control, .liveActivity]
        draft.ttlSeconds = 60
        draft.priority = 5
        draft.collapseID = "c"
        draft.expiration = ExpirationRule.none
        draft.payload = Array(#"{"aps":{"badge":1}}"#.utf8)
        let event = try decodeEvent(EventEncoder.value(draft))
        #expect(event.subject == draft.subject)
        #expect(event.environment == .development)
        #expect(event.kinds == ["k"])
        #expect(event.classes == [TokenClassSet(.control), TokenClassSet(.liveActivity)])
        #expect(event.life == .seconds(60))
        #expect(event.priority == 5)
        #expect(event.collapseID == "c")
        #expect(event.expiration == ExpirationRule.none)
        #expect(event.payload == #"{"aps":{"badge":1}}"#)
        #expect(EventEncoder.value(EventDraft()) == Array(#"{"v":1}"#.utf8))
    }

    @Test func `a dead letter says what failed, for whom and why`() throws {
        let written = DeadLetterEncoder.value(letter(), eventBytesMax: 1000)
        let json = try #require(
            try JSONSerialization.jsonObject(with: Data(written)) as? [String: Any])
        #expect(json["reason"] as? String == "PayloadTooLarge")
        #expect(json["status"] as? Int == 413)
        #expect((json["source"] as? [String: Any])?["offset"] as? Int == 7)
        #expect(json["firstAt"] as? String == "1970-01-01T00:00:00.001Z")
        #expect(json["subject"] as? String == "door-42")
        let tokens = try #require(json["tokens"] as? [[String: String]])
        #expect(tokens == [["token": "00ff", "environment": "production", "apnsTopic": "a"]])
        let event = try #require(json["event"] as? [String: Any])
        #expect(event["key"] as? String == "door-42")
        #expect(
            Data(base64Encoded: event["valueBase64"] as? String ?? "") == Data([0xFF, 0, 1, 2]))
    }

    @Test func `an original over the bound is left out`() throws {
        let size = try #require(letter().original).size
        func hasEvent(_ bytesMax: Int) throws -> Bool {
            let written = DeadLetterEncoder.value(letter(), eventBytesMax: bytesMax)
            let json = try JSONSerialization.jsonObject(with: Data(written)) as? [String: Any]
            return try #require(json).keys.contains("event")
        }
        #expect(try hasEvent(size))
        #expect(try !hasEvent(size - 1))
    }

    @Test func `bytes that are no text survive as base64, whatever their number`() throws {
        for count in 0..<7 {
            var letter = letter()
            let value = [UInt8](repeating: 0xFE, count: count)
            letter.original = .init(key: nil, value: value)
            let written = DeadLetterEncoder.value(letter, eventBytesMax: 100)
            let json = try JSONSerialization.jsonObject(with: Data(written)) as? [String: Any]
            let event = try #require(json?["event"] as? [String: String])
            #expect(event.keys.contains("key") == false)
            let text = event["value"] ?? event["valueBase64"] ?? "?"
            #expect(Data(base64Encoded: text) == Data(value))
        }
    }
}

/// A letter with something of everything.
func letter() -> DeadLetter {
    var letter = DeadLetter(
        reason: "PayloadTooLarge", source: .init(topic: "t", partition: 0, offset: 7),
        firstAt: WallTime(milliseconds: 1), lastAt: WallTime(milliseconds: 2), attempts: 1,
        subject: Array("door-42".utf8),
        targets: [.init(token: [0, 255], environment: .production, apnsTopic: "a")])
    letter.status = 413
    letter.message = "the body is over 4096 bytes"
    letter.app = "com.example.Home"
    letter.original = .init(
        key: Array("door-42".utf8), value: [0xFF, 0, 1, 2], headers: [("ce_id", [0x31])])
    return letter
}
