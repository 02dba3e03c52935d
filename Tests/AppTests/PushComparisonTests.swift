// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Entrypoint
internal import Foundation
internal import PushModel
internal import Testing

@testable internal import lamplighter

/// Pushes at seconds after an instant, the earlier first.
private func compareLogs(
    old: [(token: UInt64, at: Int64)], shadow: [(token: UInt64, at: Int64)],
    registered: Set<UInt64>? = nil, limits: PushComparison.Limits = .init()
) throws -> PushComparison {
    var comparison = PushComparison(limits, registered: registered)
    func push(_ side: PushComparison.Side, _ one: (token: UInt64, at: Int64)) -> PushComparison.Push
    {
        PushComparison.Push(
            side: side, token: one.token,
            at: WallTime(milliseconds: 1_763_712_000_000 + one.at * 1000))
    }
    let pushes =
        old.map { push(.old, $0) } + shadow.map { push(.shadow, $0) }
    for push in pushes.sorted(by: { $0.at < $1.at }) { try comparison.take(push) }
    comparison.finish()
    return comparison
}

extension PushComparison {
    fileprivate var text: String {
        Side.allCases.map { side in
            "\(side): "
                + Finding.allCases.filter { count($0, of: side) > 0 }
                .map { "\($0) \(count($0, of: side))" }.joined(separator: ", ")
        }.joined(separator: "; ")
    }
}

@Suite struct `The comparison of pushes` {
    /// Both logs have something from 0 to 9000.
    private let edges: [(token: UInt64, at: Int64)] = [(99, 0), (99, 9000)]

    @Test func `the same push of both agrees, also a while apart`() throws {
        let comparison = try compareLogs(
            old: edges + [(1, 100), (2, 200), (1, 5000)],
            shadow: edges + [(1, 101), (2, 141), (1, 5060)])
        #expect(comparison.text == "old: matched 5; shadow: matched 5")
        #expect(comparison.agreement == 1)
    }

    @Test func `one push for several agrees, whoever has sent one`() throws {
        let comparison = try compareLogs(
            old: edges + [(1, 100), (1, 110), (1, 120), (2, 200)],
            shadow: edges + [(1, 121), (2, 201), (2, 202)])
        #expect(
            comparison.text
                == "old: matched 4, coalesced 2; shadow: matched 4, coalesced 1")
        #expect(comparison.agreement == 1)
    }

    @Test func `what only one has sent is late, unregistered or unmatched`() throws {
        let comparison = try compareLogs(
            old: edges + [(1, 100), (2, 200), (3, 300)], shadow: edges + [(1, 400), (4, 500)],
            registered: [1, 3, 99])
        #expect(
            comparison.text
                == "old: matched 2, late 1, unregistered 1, unmatched 1; "
                + "shadow: matched 2, late 1, unmatched 1")
        #expect(comparison.agreement == 4.0 / 9)
        #expect(comparison.samples(.unregistered, of: .old).map(\.token) == [2])
    }

    @Test func `without the registrations nothing is called unregistered`() throws {
        let comparison = try compareLogs(old: edges + [(2, 200)], shadow: edges)
        #expect(comparison.text == "old: matched 2, unmatched 1; shadow: matched 2")
    }

    @Test func `only the time of both logs is compared`() throws {
        let comparison = try compareLogs(
            old: [(1, 0), (2, 1000), (3, 2000), (4, 9000)],
            shadow: [(2, 1000), (3, 2000), (5, 1500)])
        #expect(
            comparison.text
                == "old: matched 2, outside 2; shadow: matched 2, unmatched 1")
        #expect(comparison.compared == 5 && comparison.agreed == 4)
        let period = try #require(comparison.period)
        #expect(period.upperBound - period.lowerBound == .seconds(1000))
        #expect(try compareLogs(old: [(1, 0)], shadow: []).agreement == nil)
    }

    @Test func `a push that is out of order by more than the window is refused`() throws {
        var comparison = PushComparison(.init())
        func take(_ second: Int64) throws(PushComparison.Fault) {
            try comparison.take(
                .init(side: .old, token: 1, at: WallTime(milliseconds: second * 1000)))
        }
        try take(1000)
        try take(940)
        #expect(throws: PushComparison.Fault.disordered(by: .seconds(61))) { try take(939) }
    }

    @Test func `no more pushes are kept than fit`() throws {
        var limits = PushComparison.Limits()
        limits.pushesMax = 3
        let spread = (0..<100).map { (token: UInt64($0), at: Int64($0) * 700) }
        _ = try compareLogs(old: spread, shadow: [], limits: limits)
        let crowd = (0..<4).map { (token: UInt64($0), at: Int64($0)) }
        #expect(throws: PushComparison.Fault.tooMany) {
            try compareLogs(old: crowd, shadow: [], limits: limits)
        }
    }

    /// A model that keeps all pushes says the same.
    @Test func `random logs are compared as by a model without bounds`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<60 {
            func log(_ count: Int) -> [(token: UInt64, at: Int64)] {
                (0..<count).map { _ in
                    (.random(in: 0..<8, using: &random), .random(in: 0..<20_000, using: &random))
                }
            }
            let (old, shadow) = (log(120) + edges, log(100) + edges)
            let comparison = try compareLogs(old: old, shadow: shadow)
            func hasNear(_ push: (token: UInt64, at: Int64), _ others: [(token: UInt64, at: Int64)])
                -> Bool
            { others.contains { $0.token == push.token && abs($0.at - push.at) <= 60 } }
            let agreed =
                old.count { hasNear($0, shadow) } + shadow.count { hasNear($0, old) }
            #expect(comparison.agreed == agreed)
        }
    }

    // MARK: Logs

    private func logs(_ old: String, _ shadow: String) throws -> (URL, URL) {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "compare-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let files = (folder.appending(path: "old"), folder.appending(path: "shadow"))
        try old.write(to: files.0, atomically: true, encoding: .utf8)
        try shadow.write(to: files.1, atomically: true, encoding: .utf8)
        return files
    }

    private func compare(
        _ old: String, _ shadow: String, _ filter: PushLogReader.Filter = .init()
    ) throws -> PushComparison {
        let files = try logs(old, shadow)
        defer { try? FileManager.default.removeItem(at: files.0.deletingLastPathComponent()) }
        var comparison = PushComparison(.init())
        try CompareCommand.run(
            &comparison, old: PushLogReader(files.0.path, .old, filter),
            shadow: PushLogReader(files.1.path, .shadow, filter))
        return comparison
    }

    /// The SHA-256 of the bytes 1, 2 and 3.
    private let digest = "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"

    @Test func `of a log only one app's and one class's pushes are compared, where it says so`()
        throws
    {
        let others = [("b", "device"), ("a", "control")].map { app, tokenClass in
            #"{"at":1795241520,"tokenID":"0000000000000002","app":"\#(app)","class":"\#(tokenClass)"}"#
        }
        let shadow =
            others + [
                #"{"at":1795241521,"tokenID":"0000000000000001","app":"a","class":"device"}"#
            ]
        let comparison = try compare(
            #"{"at":1795241521,"tokenID":"0000000000000001"}"#, shadow.joined(separator: "\n"),
            .init(app: "a", tokenClass: .device))
        #expect(comparison.text == "old: matched 1; shadow: matched 1")
    }

    @Test func `logs name tokens by their SHA-256 or its first digits, and times in three ways`()
        throws
    {
        let shadow = """
            {"at":"2026-11-21T06:12:00.000Z","tokenID":"\(digest.prefix(16))","app":"a"}
            {"at":"2026-11-21T06:12:01.000Z","tokenID":"0000000000000001"}\r

            {"at":"2026-11-21T06:12:02.000Z","tokenID":"\(digest.prefix(16).uppercased())"}
            """
        let comparison = try compare(
            #"{"at":1795241520,"tokenSHA256":"\#(digest)"}"# + "\n"
                + #"{"at":1795241521000,"tokenID":"0000000000000001"}"# + "\n"
                + #"{"tokenSHA256":"\#(digest)","at":"2026-11-21T06:12:02Z"}"#, shadow)
        #expect(comparison.text == "old: matched 3; shadow: matched 3")
        let lines = ComparisonResult(comparison, window: .seconds(60)).lines
        #expect(lines[1] == "agreement 100 %")
        #expect(!lines.joined().contains(digest))
    }

    @Test(arguments: [
        ("nonsense", "old:1: it is no JSON object"),
        (#"{"tokenID":"0000000000000001"}"#, "old:1: it has no member at"),
        (#"{"at":1,"tokenID":"01"}"#, "old:1: it has neither tokenSHA256"),
        (
            "{\"at\":1795241520,\"tokenID\":\"0000000000000001\"}\n"
                + "{\"at\":1795241400,\"tokenID\":\"0000000000000001\"}",
            "old:2: it is 2 min older than a line before it"
        ),
        ("{\"at\":\"" + String(repeating: "a", count: 70_000), "old:1: it is longer than 65536"),
    ])
    func `a bad line of a log is named`(text: String, expected: String) throws {
        do {
            _ = try compare(text, "")
            Issue.record("it was taken")
        } catch {
            let failure = Failure(error)
            #expect(failure.status == .unreadableInput)
            #expect(failure.message.contains(expected), "\(failure.message)")
        }
    }

    @Test func `agreement is rounded down, so that 100 % has no difference`() throws {
        let many = (0..<200_000).map { (token: UInt64($0), at: Int64($0)) }
        let comparison = try compareLogs(
            old: many, shadow: many + [(token: 9_999_999, at: 500)])
        let result = ComparisonResult(comparison, window: .seconds(60))
        #expect(result.lines[1] == "agreement 99.999 %")
        #expect(try result.json.contains(#""unmatched":1"#))
    }
}
