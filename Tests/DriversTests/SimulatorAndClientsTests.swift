// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import Testing

/// The simulator against clients that are not ours; more of curl, nghttp and h2load is in
/// `SimulatorConnectionTests` and `SimulatorEffectTests`.
@Suite struct `The APNs simulator and clients that judge` {
    private static let good = CurlRequest()

    /// One request at a time on each connection, so that none comes before the first SETTINGS.
    @Test func `h2load is answered 2xx five thousand times`() throws {
        let fixture = try SimulatorFixture()
        let body = fixture.directory.appending(path: "body")
        try Data(Self.good.body.utf8).write(to: body)
        let paths = fixture.directory.appending(path: "paths")
        try (0..<100).map { fixture.url("/3/device/\(1000 + $0)") }.joined(separator: "\n")
            .write(to: paths, atomically: true, encoding: .utf8)
        let run = try ForeignProgram.run(
            "h2load",
            ["-n", "5000", "-c", "4", "-m", "1", "-d", body.path, "-i", paths.path]
                + Self.good.headers.flatMap { ["-H", "\($0.name): \($0.value)"] })
        #expect(run.output.contains("5000 succeeded, 0 failed, 0 errored"), "\(run.output)")
        #expect(run.output.contains("5000 2xx, 0 3xx, 0 4xx, 0 5xx"), "\(run.output)")
        #expect(fixture.simulator.counts.streamsRefused == 0)
    }

    @Test func `Python's httpx pushes, is refused, and pushes by the hundred at once`() throws {
        let fixture = try SimulatorFixture { $0.delay = .milliseconds(20) }
        let task = HTTPXTask(
            authority: fixture.caFile, url: fixture.url("/3/device/"),
            headers: Dictionary(
                uniqueKeysWithValues: Self.good.headers.map { ($0.name, $0.value) }),
            body: Self.good.body, concurrent: 300)
        let arguments = String(decoding: try JSONEncoder().encode(task), as: UTF8.self)
        let run = try ForeignProgram.run(
            PythonPeer.interpreter, ["-c", HTTPXTask.program, arguments])
        #expect(run.status == 0, "\(run.output)")
        let result = try JSONDecoder().decode(
            HTTPXTask.Result.self, from: Data(run.output.utf8))
        #expect(result.good == .init(status: 200, version: "HTTP/2", body: ""))
        #expect(
            result.bad
                == .init(status: 400, version: "HTTP/2", body: #"{"reason":"BadDeviceToken"}"#))
        #expect(result.statuses == ["200": 300])
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 301 })
        #expect(fixture.simulator.counts.streamsRefused == 0)
        #expect(fixture.simulator.counts.connectionsOpened == 1)
    }
}

/// What a Python program with `httpx` is told to do, and what it tells.
private struct HTTPXTask: Encodable {
    let authority: String
    /// A device token is put behind it.
    let url: String
    let headers: [String: String]
    let body: String
    /// So many pushes at once, after a good and a bad one.
    let concurrent: Int

    struct Result: Decodable {
        struct Answer: Decodable, Equatable {
            let status: Int
            let version: String
            let body: String
        }

        let good: Answer
        let bad: Answer
        let statuses: [String: Int]
    }

    static let program = #"""
        import asyncio, collections, httpx, json, sys
        task = json.loads(sys.argv[1])
        def told(answer):
            return dict(status=answer.status_code, version=answer.http_version, body=answer.text)
        async def run():
            async with httpx.AsyncClient(
                http2=True, verify=task["authority"], trust_env=False, timeout=60
            ) as client:
                def push(token):
                    return client.post(
                        task["url"] + token, headers=task["headers"], content=task["body"])
                good, bad = await push("00fc13ad"), await push("nonsense")
                many = await asyncio.gather(
                    *[push("%08x" % number) for number in range(task["concurrent"])])
                statuses = collections.Counter(str(answer.status_code) for answer in many)
                print(json.dumps(dict(good=told(good), bad=told(bad), statuses=statuses)))
        asyncio.run(run())
        """#
}
