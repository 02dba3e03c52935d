// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import Testing

@Suite struct `The APNs simulator's script` {
    private static let good = CurlRequest()

    @Test func `a simulator's script answers by token and by prefix`() throws {
        let fixture = try SimulatorFixture {
            $0.rules = [
                ScriptedRule(tokenPrefix: "aa00", answer: .reason(400, "BadDeviceToken")),
                ScriptedRule(tokenPrefix: "AA", answer: .gone("Unregistered", .at(1234))),
                ScriptedRule(tokenPrefix: "bb", answer: .gone("ExpiredToken", .absent)),
                ScriptedRule(tokenPrefix: "cc", answer: .html(502)),
                ScriptedRule(tokenPrefix: "dd", answer: .emptyBody(503)),
                ScriptedRule(tokenPrefix: "ee", answer: .reason(400, "NeverHeardOf")),
            ]
        }
        let tokens = ["aa00", "aa01", "bb", "cc", "dd", "ee", "ff"]
        let answers = try fixture.curl(tokens.map { Self.good.to(token: $0) })
        #expect(answers.map(\.status) == [400, 410, 410, 502, 503, 400, 200])
        let bodies = [
            #"{"reason":"BadDeviceToken"}"#, #"{"reason":"Unregistered","timestamp":1234}"#,
            #"{"reason":"ExpiredToken"}"#, "<html><body><h1>502</h1></body></html>\n", "",
            #"{"reason":"NeverHeardOf"}"#, "",
        ]
        #expect(answers.map(\.body) == bodies)
    }

    @Test func `a simulator's script dates a 410 before and after now, in milliseconds`() throws {
        let fixture = try SimulatorFixture {
            $0.rules = [
                ScriptedRule(
                    tokenPrefix: "aa", answer: .gone("Unregistered", .fromNow(.seconds(-60)))),
                ScriptedRule(answer: .gone("Unregistered", .fromNow(.seconds(60)))),
            ]
        }
        struct Body: Decodable { let timestamp: Double }
        let now = Date().timeIntervalSince1970 * 1000
        let offsets = try fixture.curl([Self.good.to(token: "aa"), Self.good]).map {
            try JSONDecoder().decode(Body.self, from: Data($0.body.utf8)).timestamp - now
        }
        #expect(abs(offsets[0] + 60_000) < 10_000)
        #expect(abs(offsets[1] - 60_000) < 10_000)
    }

    @Test func `a simulator's script answers by the address that was connected to`() throws {
        let fixture = try SimulatorFixture {
            $0.rules = [
                ScriptedRule(address: "127.0.0.2", answer: .reason(500, "InternalServerError")),
                ScriptedRule(address: "127.0.0.1", answer: .reason(503, "ServiceUnavailable")),
            ]
        }
        #expect(try fixture.curl(Self.good).status == 503)
    }

    @Test func `a simulator's script spreads a share evenly and judges first`() throws {
        let fixture = try SimulatorFixture {
            $0.rules = [ScriptedRule(share: 0.1, answer: .reason(500, "InternalServerError"))]
        }
        let answers = try fixture.curl(Array(repeating: Self.good, count: 40))
        #expect(answers.filter { $0.status == 500 }.count == 4)
        fixture.simulator.perform(
            .rules([ScriptedRule(answer: .reason(503, "ServiceUnavailable"))]))
        #expect(try fixture.curl(Self.good).reason == "ServiceUnavailable")
        #expect(try fixture.curl(Self.good.with("apns-priority", "3")).reason == "BadPriority")
        fixture.simulator.perform(.rules([]))
        #expect(try fixture.curl(Self.good).status == 200)
    }

    @Test func `a simulator's script can cool a token that is pushed to in rapid succession`()
        throws
    {
        let fixture = try SimulatorFixture { $0.deviceTokenGapMin = .seconds(60) }
        let answers = try fixture.curl([Self.good, Self.good, Self.good.to(token: "aa")])
        #expect(answers.map(\.reason) == ["", "TooManyRequests", ""])
    }

    @Test func `a simulator's script can reset a stream`() throws {
        let fixture = try SimulatorFixture {
            $0.rules = [ScriptedRule(answer: .reset(2))]
        }
        #expect(try fixture.curl(Self.good).status == 0)
        #expect(fixture.simulator.counts.unanswered == 1)
        fixture.simulator.stop()
        #expect(try fixture.logLines().isEmpty)
    }

    @Test func `a simulator's script delays the answer and not the decision`() throws {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(150) }
        let before = Int(Date().timeIntervalSince1970 * 1e9)
        let answer = try fixture.curl(Self.good)
        let after = Int(Date().timeIntervalSince1970 * 1e9)
        #expect(answer.status == 200)
        #expect(answer.seconds >= 0.15)
        fixture.simulator.stop()
        struct Line: Decodable { let t: Int }
        let lines = try fixture.logLines()
        let line = try JSONDecoder().decode(Line.self, from: Data(try #require(lines.first).utf8))
        #expect(line.t > before)
        #expect(line.t < after - 150_000_000)
    }

    @Test func `the simulator logs one line for each answer, in a fixed form, while it runs`()
        throws
    {
        let fixture = try SimulatorFixture { $0.recordRequests = 2 }
        let uuid = "123e4567-e89b-12d3-a456-426614174000"
        let request = Self.good.with("apns-id", uuid)
        _ = try fixture.curl([
            request, request.with("apns-topic", "a\\\\\\\"b"), request.with("apns-priority", "2"),
        ])
        #expect(try SimulatorFixture.eventually { try fixture.logLines().count == 3 })
        let end = #","token":"\#(SimulatorFixture.token)","apnsID":"\#(uuid)""#
        let topic = "com.example.Home.push-type.controls"
        let expected = [
            #""conn":1,"env":"production","topic":"\#(topic)"\#(end),"status":200,"reason":""}"#,
            #""conn":1,"env":"production","topic":"a\u005c\u0022b"\#(end)"#
                + #","status":400,"reason":"TopicDisallowed"}"#,
            #""conn":1,"env":"production","topic":"\#(topic)"\#(end)"#
                + #","status":400,"reason":"BadPriority"}"#,
        ]
        let lines = try fixture.logLines()
        for (line, rest) in zip(lines, expected) {
            let parts = line.split(separator: ",", maxSplits: 1)
            #expect(parts[0].hasPrefix(#"{"t":"#) && parts[0].count == 24)
            #expect(parts[1] == rest)
        }
        let recorded = fixture.simulator.recordedRequests
        #expect(recorded.count == 2)
        #expect(recorded[0][":path"] == "/3/device/\(SimulatorFixture.token)")
        #expect(recorded[0]["apns-id"] == uuid)
        #expect(String(decoding: recorded[0].body, as: UTF8.self) == request.body)
        #expect(recorded.map(\.answer.status) == [200, 400])
    }
}
