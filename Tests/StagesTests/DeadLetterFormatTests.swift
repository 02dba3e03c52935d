// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Dead letter format` {
    private func decoded(_ bytes: [UInt8]) throws -> DeadLetter {
        var decoder = DeadLetterDecoder()
        return try lending(bytes) { try decoder.letter($0) }
    }

    private func decoded(_ text: String) throws -> DeadLetter { try decoded(Array(text.utf8)) }

    /// A letter of pushes that had a payload, with nothing that is text where it need not be.
    private static func payloadLetter() -> DeadLetter {
        var letter = DeadLetter(
            reason: "AttemptsExhausted", source: .init(topic: "t", partition: 3, offset: 1 << 40),
            firstAt: WallTime(milliseconds: 1), lastAt: WallTime(milliseconds: 2), attempts: 10,
            subject: [0xFF, 0, 0x41],
            targets: [
                .init(token: [1], environment: .production, apnsTopic: "a"),
                .init(
                    token: Array(repeating: 0xFE, count: 512), environment: .development,
                    apnsTopic: "b"),
            ])
        letter.collapseID = "score \"1\""
        letter.payloadSource = .init(topic: "u", partition: 0, offset: 7)
        letter.original = .init(key: nil, value: Array(#"{"aps":{"alert":"x"}}"#.utf8))
        return letter
    }

    @Test func `what the encoder writes, the decoder reads`() throws {
        var bare = letter()
        bare.original = nil
        bare.status = nil
        bare.message = nil
        bare.app = nil
        bare.correlation = .none
        bare.subject = []
        bare.targets = []
        var nothing = letter()
        nothing.original = .init(key: nil, value: nil)
        var empty = letter()
        empty.original = .init(key: [], value: [], headers: [("", []), ("a", [0xFF])])
        var repeated = letter()
        repeated.repeats = 86_400
        for letter in [letter(), bare, nothing, empty, repeated, Self.payloadLetter()] {
            let read = try decoded(DeadLetterEncoder.value(letter, eventBytesMax: 1000))
            #expect(read.isSame(as: letter))
        }
    }

    @Test func `a letter says that its event was left out, and goes on saying it`() throws {
        let written = DeadLetterEncoder.value(letter(), eventBytesMax: 1)
        let read = try decoded(written)
        #expect(read.isOriginalLeftOut && read.original == nil)
        #expect(DeadLetterEncoder.value(read, eventBytesMax: 1) == written)
        let whole = try decoded(DeadLetterEncoder.value(letter(), eventBytesMax: 99))
        #expect(!whole.isOriginalLeftOut && whole.original != nil)
    }

    @Test func `the schema knows every letter that is written`() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let data = try Data(
            contentsOf: folder.appendingPathComponent("docs/schemas/dead-letter.schema.json"))
        let judge = SchemaJudge(root: try JSONDecoder().decode(JSON.self, from: data))
        for (letter, bytesMax) in [(Self.payloadLetter(), 1000), (Self.payloadLetter(), 1)] {
            let written = Data(DeadLetterEncoder.value(letter, eventBytesMax: bytesMax))
            #expect(try judge.accepts(try JSONDecoder().decode(JSON.self, from: written)))
        }
    }

    @Test func `the payload of its pushes comes back with their type`() throws {
        var decoder = DeadLetterDecoder()
        let payload = try #require(try decoder.payload(of: Self.payloadLetter(), for: .device))
        #expect(payload.type == .alert)
        #expect(payload.body == Self.payloadLetter().original?.value)
        var lookAgain = Self.payloadLetter()
        lookAgain.original = nil
        #expect(try decoder.payload(of: lookAgain, for: .device) == nil)
        var damaged = Self.payloadLetter()
        damaged.original?.value = Array("{".utf8)
        #expect(refusal { _ = try decoder.payload(of: damaged, for: .device) } == .invalidJSON)
    }

    static let sound =
        #"{"v":1,"reason":"r","attempts":1,"source":{"topic":"t","partition":0,"offset":0},"#
        + #""firstAt":"2026-11-20T00:00:00Z","lastAt":"2026-11-20T00:00:00Z","#
        + #""tokens":[{"token":"00ff","environment":"production","apnsTopic":"a"}]}"#

    @Test(
        arguments: [
            (#""v":1"#, #""v":2"#, .unknownVersion), (#""v":1,"#, "", .missingField),
            (#""reason":"r""#, #""reason":1"#, .invalidField),
            (#""reason":"r","#, "", .missingField),
            (#""attempts":1"#, #""attempts":-1"#, .invalidField),
            (#""offset":0"#, #""offset":-1"#, .invalidField),
            (#"2026-11-20T00:00:00Z","lastAt""#, #"yesterday","lastAt""#, .invalidField),
            ("00ff", "00f", .invalidField), ("00ff", "0g", .invalidField),
            ("production", "moon", .invalidField), (#"[{"token"#, #"{"token"#, .invalidJSON),
            (#""v":1"#, #""v":1,"status":99"#, .invalidField),
            (#""v":1"#, #""v":1,"repeats":0"#, .invalidField),
            (#""v":1"#, #""v":1,"event":[]"#, .invalidField),
            (#""v":1"#, #""v":1,"event":{"valueBase64":"A"}"#, .invalidField),
            (#""v":1"#, #""v":1,"event":{"headers":[1]}"#, .invalidField),
            (#""v":1"#, #""v":1,"event":{"headers":[{"value":"x"}]}"#, .missingField),
        ] as [(String, String, UnreadableCode)])
    func `a malformed letter is refused with its reason`(
        part: String, instead: String, code: UnreadableCode
    ) throws {
        _ = try decoded(Self.sound)
        #expect(Self.sound.contains(part))
        let damaged = Self.sound.replacing(part, with: instead, maxReplacements: 1)
        #expect(refusal { _ = try decoded(damaged) } == code)
    }

    @Test func `a tombstone and an empty value are no letters`() {
        var decoder = DeadLetterDecoder()
        #expect(refusal { _ = try decoder.letter(nil) } == .emptyValue)
        #expect(refusal { _ = try decoded([]) } == .emptyValue)
    }

    @Test(arguments: [51, 52] as [UInt64])
    func `random bytes are read or refused`(seed: UInt64) {
        var random = IntakeRandom(state: seed)
        var read = 0
        for _ in 0..<500 {
            if let letter = try? decoded(random.damaged(Self.sound)) {
                #expect(letter.targets.allSatisfy { (1...512).contains($0.token.count) })
                read += 1
            }
        }
        #expect(read > 5 && read < 450)
    }

    @Test func `eight reasons forbid another try`() {
        #expect(
            Set(AnswerTable.forbiddenToRetry.map(\.name)) == [
                "BadDeviceToken", "DeviceTokenNotForTopic", "Forbidden", "ExpiredToken",
                "Unregistered", "PayloadTooLarge", "BadChannelId", "ChannelNotRegistered",
            ])
        for row in AnswerTable.rows where AnswerTable.forbiddenToRetry.contains(row.reason) {
            switch row.push {
            case .reject, .rejectToken, .suppression: break
            default: Issue.record("\(row.reason) is tried again by itself")
            }
        }
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
