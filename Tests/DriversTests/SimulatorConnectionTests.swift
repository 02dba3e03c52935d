// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import Testing

/// Against nghttp, h2load and curl, which are not ours.
@Suite struct `The APNs simulator's connections` {
    private static let good = CurlRequest()

    private func arguments(_ fixture: SimulatorFixture) throws -> [String] {
        let body = fixture.directory.appending(path: "body")
        try Data(Self.good.body.utf8).write(to: body)
        return ["-d", body.path]
            + Self.good.headers.flatMap { ["-H", "\($0.name): \($0.value)"] }
            + [fixture.url(Self.good.path)]
    }

    @Test func `simulator connections allow one stream, and more after a valid provider token`()
        throws
    {
        let fixture = try SimulatorFixture { $0.streamLimit = 77 }
        let run = try ForeignProgram.run("nghttp", ["-nv"] + arguments(fixture))
        let limits = run.output.split(separator: "\n").filter {
            $0.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):")
        }.map { $0.dropLast().suffix(while: { $0.isNumber }) }
        // nghttp prints its own 100 too.
        #expect(limits.filter { $0 != "100" } == ["1", "77"], "\(run.output)")
        #expect(run.output.contains(":status: 200"))
    }

    @Test func `simulator connections stay closed to more streams while the provider token is bad`()
        throws
    {
        let fixture = try SimulatorFixture { $0.streamLimit = 77 }
        let bad = try arguments(fixture).map { $0.hasPrefix("authorization") ? "x: y" : $0 }
        let run = try ForeignProgram.run("nghttp", ["-nv"] + bad)
        #expect(run.output.contains(":status: 403"))
        #expect(!run.output.contains("(0x03):77"))
    }

    @Test(arguments: [1, 2])
    func `simulator connections serve many streams on several threads`(threads: Int) throws {
        let fixture = try SimulatorFixture { $0.threads = threads }
        let run = try ForeignProgram.run(
            "h2load", ["-c", "4", "-m", "50", "-n", "8000"] + arguments(fixture))
        // A thread counts at the end of its turn, when h2load has its last answer already.
        fixture.simulator.stop()
        let counts = fixture.simulator.counts
        // Streams opened before the first SETTINGS has come are refused; the rest is answered.
        #expect(counts.accepted + counts.streamsRefused == 8000, "\(run.output)")
        #expect(counts.accepted > 7000)
        #expect(counts.connectionsOpened == 4)
        #expect(try fixture.logLines().count == counts.accepted)
        #expect(fixture.simulator.counts.connectionsOpen == 0)
    }

    /// Requests to 20,000 tokens, so that the book of tokens grows and is then read.
    @Test func `simulator connections remember the topic of many tokens, up to a bound`() throws {
        let fixture = try SimulatorFixture()
        let list = fixture.directory.appending(path: "urls")
        let urls = (0..<20_000).map { fixture.url("/3/device/\(10_000 + $0)0") }
        try urls.joined(separator: "\n").write(to: list, atomically: true, encoding: .utf8)
        let load = ["-m", "100", "-n", "20000", "-i", list.path]
        let good = try arguments(fixture).dropLast()
        let run = try ForeignProgram.run("h2load", load + good)
        let first = fixture.simulator.counts
        #expect(first.accepted + first.streamsRefused == 20_000, "\(run.output)")
        #expect(first.rejected == 0)
        #expect(first.tokensUnremembered == 0)

        let other = good.map { $0.replacingOccurrences(of: "controls", with: "widgets") }
        _ = try ForeignProgram.run("h2load", load + other)
        let second = fixture.simulator.counts
        // Only tokens that were refused at first are new now.
        #expect(second.accepted - first.accepted <= first.streamsRefused)
        #expect(second.rejected > 19_000)

        let small = try SimulatorFixture { $0.deviceTokensMax = 64 }
        let answers = try small.curl((10..<90).map { Self.good.to(token: "\($0)") })
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(small.simulator.counts.tokensUnremembered >= 80 - 64)
    }

    @Test func `simulator connections survive garbage and header lists beyond the announced size`()
        throws
    {
        let fixture = try SimulatorFixture()
        let large = Self.good.with("x-large", String(repeating: "x", count: 8000))
        #expect(try fixture.curl([large, Self.good]).map(\.status) == [0, 200])
        #expect(fixture.simulator.counts.rejected == 0)

        let garbage = fixture.directory.appending(path: "garbage")
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        try Data(preface.utf8 + (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
            .write(to: garbage)
        let client = "openssl s_client -quiet -alpn h2 -connect localhost:\(fixture.port)"
        // `sleep` keeps the client there: the end has to come from the simulator.
        let running = try ForeignProgram.start(
            "sh", ["-c", "(cat \(garbage.path); sleep 1) | \(client)"])
        #expect(
            SimulatorFixture.eventually {
                let counts = fixture.simulator.counts
                return counts.connectionsOpened == 2 && counts.connectionsOpen == 0
            })
        #expect(running.isRunning)
        _ = running.finish()
        #expect(try fixture.curl(Self.good).status == 200)
    }

    @Test func `simulator connections refuse streams on demand`() throws {
        let fixture = try SimulatorFixture()
        fixture.simulator.perform(.refuseStreams(1))
        let run = try ForeignProgram.run("nghttp", ["-nv"] + arguments(fixture))
        #expect(run.output.contains("REFUSED_STREAM"), "\(run.output)")
        #expect(fixture.simulator.counts.streamsRefused == 1)
        #expect(try fixture.curl(Self.good).status == 200)
    }

    @Test func `simulator connections end with GOAWAY, its reason, and a stream below those open`()
        throws
    {
        let fixture = try SimulatorFixture()
        fixture.simulator.perform(.stall(true))
        let running = try ForeignProgram.start("nghttp", ["-nv"] + arguments(fixture))
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.unanswered == 1 })
        fixture.simulator.perform(.goAway(reason: "Shutdown", streamsBelow: 1))
        let output = running.finish().output
        #expect(output.contains("error_code=NO_ERROR(0x00)"), "\(output)")
        #expect(output.contains(#"opaque_data(21)=[{"reason":"Shutdown"}]"#), "\(output)")
        let last = output.split(separator: "(last_stream_id=").dropFirst().first
        // nghttp's first request is stream 13: it keeps the ones before for priorities.
        #expect(last?.prefix { $0.isNumber } == "11")
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.connectionsOpen == 0 })
    }

    @Test func `connections of the APNs simulator stall, and are cut without a word`() throws {
        let fixture = try SimulatorFixture()
        fixture.simulator.perform(.stall(true))
        let running = try ForeignProgram.start("nghttp", ["-nv"] + arguments(fixture))
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.unanswered == 1 })
        #expect(fixture.simulator.counts.requestsOpen == 1)
        fixture.simulator.perform(.resetConnections)
        let output = running.finish().output
        #expect(!output.contains("GOAWAY <"))
        #expect(!output.contains(":status"))
        fixture.simulator.perform(.stall(false))
        #expect(try fixture.curl(Self.good).status == 200)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.requestsOpen == 0 })
    }

    @Test func `simulator connections follow a changed stream limit`() throws {
        let fixture = try SimulatorFixture()
        fixture.simulator.perform(.delay(.milliseconds(300)))
        let running = try ForeignProgram.start("nghttp", ["-nv"] + arguments(fixture))
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 1 })
        fixture.simulator.perform(.streamLimit(5))
        let output = running.finish().output
        #expect(output.contains("(0x03):1000]") && output.contains("(0x03):5]"), "\(output)")
        #expect(output.contains(":status: 200"))
    }

    @Test func `simulator connections are turned away above the bound, and by HTTP/1.1`() throws {
        let fixture = try SimulatorFixture { $0.connectionsMax = 1 }
        fixture.simulator.perform(.stall(true))
        let running = try ForeignProgram.start("nghttp", ["-nv"] + arguments(fixture))
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.unanswered == 1 })
        #expect(try fixture.curl(Self.good).status == 0)
        #expect(fixture.simulator.counts.connectionsTurnedAway == 1)
        fixture.simulator.perform(.resetConnections)
        _ = running.finish()
        let old = try ForeignProgram.run(
            "curl", ["-sS", "--http1.1", "--cacert", fixture.caFile, fixture.url("/")])
        #expect(old.status != 0)
        #expect(old.output.contains("alert"), "\(old.output)")
    }
}

extension StringProtocol {
    fileprivate func suffix(while isWanted: (Character) -> Bool) -> String {
        String(reversed().prefix(while: isWanted).reversed())
            .trimmingCharacters(in: .whitespaces)
    }
}
