// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import PushModel
internal import Testing

/// What each command does to a client, curl, nghttp or h2load.
@Suite struct `The effect of the APNs simulator's commands` {
    private static let good = CurlRequest()

    private func say(_ line: String, to fixture: SimulatorFixture) throws {
        guard case .perform(let command) = try CommandLanguage.parse(line) else {
            Issue.record("\(line) is nothing to perform")
            return
        }
        try fixture.simulator.attempt(command)
    }

    /// The answers' reasons, or their statuses where there is none.
    private func reasons(
        _ requests: [CurlRequest], _ fixture: SimulatorFixture
    ) throws -> [String] {
        try fixture.curl(requests).map { $0.reason.isEmpty ? "\($0.status)" : $0.reason }
    }

    private func startClient(_ fixture: SimulatorFixture) throws -> ForeignProgram.Running {
        try ForeignProgram.start("nghttp", ["-nv"] + clientArguments(fixture))
    }

    private func clientArguments(_ fixture: SimulatorFixture) throws -> [String] {
        let body = fixture.directory.appending(path: "body")
        try Data(Self.good.body.utf8).write(to: body)
        return ["-d", body.path]
            + Self.good.headers.flatMap { ["-H", "\($0.name): \($0.value)"] }
            + [fixture.url(Self.good.path)]
    }

    @Test func `simulator commands hold from the first request when they are given at start`()
        throws
    {
        let fixture = try SimulatorFixture {
            $0.commands = [.streamLimit(5), .refuseStreams(1)]
        }
        let output = try startClient(fixture).finish().output
        #expect(output.contains("REFUSED_STREAM"), "\(output)")
        let second = try startClient(fixture).finish().output
        #expect(second.contains("(0x03):5]"), "\(second)")
    }

    @Test func `simulator commands raise and lower the stream limit of an open connection`() throws
    {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(200) }
        let client = try startClient(fixture)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 1 })
        try say("streams 3", to: fixture)
        try say("streams 2000", to: fixture)
        let output = client.finish().output
        #expect(output.contains("(0x03):3]") && output.contains("(0x03):2000]"), "\(output)")
    }

    @Test func `simulator commands end connections with GOAWAY, with a reason and without`() throws
    {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(100) }
        let rows = [("goaway", "(0)"), ("goaway Shutdown", #"(21)=[{"reason":"Shutdown"}]"#)]
        for (line, data) in rows {
            let accepted = fixture.simulator.counts.accepted
            let client = try startClient(fixture)
            #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted > accepted })
            try say(line, to: fixture)
            let output = client.finish().output
            #expect(output.contains("opaque_data\(data)"), "\(output)")
            // What was processed is answered.
            #expect(output.contains(":status: 200"), "\(output)")
        }
    }

    @Test func `simulator commands reset open streams, and requests by rule, with any code`() throws
    {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(5000) }
        let client = try startClient(fixture)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 1 })
        try say("reset streams INTERNAL_ERROR", to: fixture)
        let output = client.finish().output
        #expect(output.contains("error_code=INTERNAL_ERROR(0x02)"), "\(output)")
        try say("delay 0s", to: fixture)
        try say("answer reset:ENHANCE_YOUR_CALM", to: fixture)
        let second = try startClient(fixture).finish().output
        #expect(second.contains("error_code=ENHANCE_YOUR_CALM(0x0b)"), "\(second)")
    }

    @Test func `simulator commands swallow everything in a black hole, and give it back`() throws {
        let fixture = try SimulatorFixture()
        try say("blackhole on", to: fixture)
        let client = try startClient(fixture)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.connectionsOpened == 1 })
        Thread.sleep(forTimeInterval: 0.1)
        #expect(client.isRunning)
        #expect(fixture.simulator.counts.accepted == 0)
        try say("blackhole off", to: fixture)
        #expect(client.finish().output.contains(":status: 200"))

        // An answer that is due meanwhile stays in too.
        try say("delay 50ms", to: fixture)
        let late = try startClient(fixture)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 2 })
        try say("blackhole on", to: fixture)
        Thread.sleep(forTimeInterval: 0.15)
        #expect(late.isRunning)
        try say("blackhole off", to: fixture)
        #expect(late.finish().output.contains(":status: 200"))
    }

    @Test func `simulator commands can be cut out of a black hole`() throws {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(5000) }
        let client = try startClient(fixture)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 1 })
        try say("blackhole on", to: fixture)
        try say("reset connections", to: fixture)
        #expect(!client.finish().output.contains(":status"))
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.connectionsOpen == 0 })
    }

    @Test func `simulator commands draw delays within their bounds`() throws {
        let fixture = try SimulatorFixture()
        try say("delay uniform 20ms..40ms", to: fixture)
        let even = try fixture.curl(Array(repeating: Self.good, count: 6)).dropFirst()
        #expect(even.allSatisfy { $0.status == 200 && $0.seconds >= 0.02 })
        #expect(Set(even.map(\.seconds)).count > 1)

        // Uncapped, one of a mean of an hour would not come within curl's 10 seconds.
        try say("delay exponential 1h cap 30ms", to: fixture)
        let capped = try fixture.curl(Array(repeating: Self.good, count: 3)).dropFirst()
        #expect(capped.allSatisfy { $0.status == 200 && $0.seconds >= 0.029 && $0.seconds < 5 })

        try say("delay uniform 0ms..20ms", to: fixture)
        let before = fixture.simulator.counts
        let run = try ForeignProgram.run(
            "h2load", ["-m", "50", "-n", "1000"] + clientArguments(fixture))
        let after = fixture.simulator.counts
        let accepted = after.accepted - before.accepted
        #expect(accepted + after.streamsRefused - before.streamsRefused == 1000, "\(run.output)")
        #expect(run.output.contains("\(accepted) succeeded"), "\(run.output)")
    }

    @Test func `simulator commands tell an idle connection so, and close it`() throws {
        let fixture = try SimulatorFixture()
        try say("idle 150ms", to: fixture)
        let spaced = try fixture.curl(
            Array(repeating: Self.good, count: 3), options: ["rate = \"180/m\""])
        #expect(spaced.map(\.reason) == ["", "IdleTimeout", ""])
        #expect(spaced.map(\.status) == [200, 400, 200])
        #expect(fixture.simulator.counts.connectionsOpened == 2)
        try say("idle off", to: fixture)
        let off = try fixture.curl([Self.good, Self.good], options: ["rate = \"180/m\""])
        #expect(off.map(\.status) == [200, 200])
    }

    @Test func `simulator commands change what provider tokens may be`() throws {
        let team = SigningTeam.home
        func answer(_ line: String, _ bearers: String...) throws -> String? {
            let fixture = try SimulatorFixture()
            try say(line, to: fixture)
            return try reasons(bearers.map { CurlRequest(bearer: $0) }, fixture).last
        }
        #expect(try answer("jwt age 30m", team.bearer(age: 2000)) == "ExpiredProviderToken")
        #expect(try answer("jwt age 2h", team.bearer(age: 4000)) == "200")
        #expect(try answer("jwt skew 20m", team.bearer(age: -600)) == "200")
        #expect(try answer("jwt update 0s", team.bearer(age: 9), team.bearer()) == "200")
        #expect(
            try answer("jwt update 1h", team.bearer(age: 9), team.bearer())
                == "TooManyProviderTokenUpdates")
    }

    @Test func `simulator commands change what device tokens may be`() throws {
        let fixture = try SimulatorFixture()
        let topic = "\(SimulatorFixture.bundleID).push-type"
        try say("token a1 \(topic).widgets", to: fixture)
        try say("token a2 \(topic).controls development", to: fixture)
        let strange = ["a1", "a2"].map { Self.good.to(token: $0) }
        #expect(try reasons(strange, fixture) == ["DeviceTokenNotForTopic", "BadDeviceToken"])
        try say("tokens topics off", to: fixture)
        #expect(try reasons(strange, fixture) == ["200", "BadDeviceToken"])
        try say("tokens environments off", to: fixture)
        #expect(try reasons(strange, fixture) == ["200", "200"])
        #expect(throws: SimulatorError.self) { try say("token a3 com.unknown", to: fixture) }

        try say("tokens bytes 32..100", to: fixture)
        let sized = [31, 32, 100, 101].map {
            Self.good.to(token: String(repeating: "b1", count: $0))
        }
        let bad = "BadDeviceToken"
        #expect(try reasons(sized, fixture) == [bad, "200", "200", bad])

        try say("tokens gap 1h", to: fixture)
        #expect(try reasons([Self.good, Self.good], fixture) == ["200", "TooManyRequests"])
        try say("tokens gap off", to: fixture)
        #expect(try reasons([Self.good, Self.good], fixture) == ["200", "200"])
    }

    @Test func `simulator commands dictate answers for a share, a token, a time`() throws {
        let fixture = try SimulatorFixture()
        try say("answer 410:Unregistered died none token aa", to: fixture)
        try say("answer 503:ServiceUnavailable share 50%", to: fixture)
        let four = Array(repeating: Self.good, count: 4) + [Self.good.to(token: "aa")]
        let unavailable = "ServiceUnavailable"
        #expect(
            try reasons(four, fixture)
                == ["200", unavailable, "200", unavailable, "Unregistered"])
        try say("rules clear", to: fixture)
        #expect(try reasons(four, fixture) == Array(repeating: "200", count: 5))
        try say("answer 500 for 700ms", to: fixture)
        #expect(try fixture.curl(Self.good).status == 500)
        #expect(
            try SimulatorFixture.eventually { try fixture.curl(Self.good).status == 200 })
    }

    @Test func `simulator commands do not pile up rules without end`() throws {
        let fixture = try SimulatorFixture()
        for _ in 0..<1000 { try say("answer 500 token ff", to: fixture) }
        let error = #expect(throws: SimulatorError.self) { try say("answer 500", to: fixture) }
        #expect(error?.description == "1000 rules are in force; say rules clear")
        try say("rules clear", to: fixture)
        try say("answer 500", to: fixture)
        #expect(try fixture.curl(Self.good).status == 500)
    }
}
