// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Worker

/// The tests of the live page show made-up statuses, so those must be such as a worker can answer.
@Suite struct `The statuses that the page is tested with` {
    /// The statuses by name. In the file, each but `healthy` has only the members that differ.
    private static func statuses() throws -> [String: [String: Any]] {
        let text = try Repository.text("Tests/Surfaces/statuses.json")
        let file = try #require(
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: [String: Any]])
        let healthy = try #require(file["healthy"])
        return file.mapValues { healthy.merging($0) { $1 } }
    }

    /// The states of a worker of which the statuses tell.
    private static func states() -> [String: WorkerStatus] {
        var refusedKey = WorkerStatus.well()
        refusedKey.breakers = [
            TrippedBreaker(
                name: "credential home in production",
                cause: .credentialRefused(.invalidProviderToken), probeIn: .seconds(12))
        ]
        refusedKey.counters.deadLettersWritten = 3
        var stalled = WorkerStatus.well()
        stalled.pools = [
            WorkerStatus.Pool(
                credential: "home", environment: "production",
                endpoint: "api.push.apple.com:443", connections: 4, streams: 4000,
                streamsMax: 4000, silence: .milliseconds(4100))
        ]
        var replaying = WorkerStatus.well(.replaying)
        replaying.index.recordsRead = 620_000
        replaying.index.tables[0].unread = 380_000
        replaying.index.elapsed = .milliseconds(13_400)
        replaying.earlier = WorkerStatus.Earlier()
        replaying.earlier.readAt = replaying.index.elapsed
        var old = WorkerStatus.well()
        old.isCurrent = false
        var restricted = WorkerStatus.well()
        var pause = Restriction(
            .pause, by: "anna", at: WallTime(rfc3339: "2026-11-21T05:58:00Z")!)
        pause.reason = "the backend is slow"
        pause.until = WallTime(rfc3339: "2026-11-21T07:00:00Z")
        restricted.restrictions = [
            .pushes(app: "com.example.Home", tokenClass: nil): pause,
            .pushes(app: nil, tokenClass: .widget): Restriction(
                .limit(perSecond: 500), by: "berta", at: WallTime(rfc3339: "2026-11-21T06:01:00Z")!),
            .pushes(app: nil, tokenClass: .device): Restriction(
                .drop, by: ConfiguredRestriction.by, at: WallTime(rfc3339: "2026-11-21T06:02:00Z")!),
        ]
        return [
            "restricted": restricted, "healthy": .well(), "refusedKey": refusedKey,
            "stalled": stalled,
            "replaying": replaying, "old": old,
        ]
    }

    /// The paths of the members of a JSON value.
    private func members(of value: Any, at path: String = "") -> Set<String> {
        switch value {
        case let object as [String: Any]:
            return object.reduce(into: []) { found, member in
                found.insert("\(path).\(member.key)")
                found.formUnion(members(of: member.value, at: "\(path).\(member.key)"))
            }
        case let list as [Any]:
            return list.reduce(into: []) { $0.formUnion(members(of: $1, at: path + "[]")) }
        default: return []
        }
    }

    @Test func `each has the members of a report, and no other`() throws {
        for (name, status) in try Self.statuses() {
            let data = try JSONSerialization.data(withJSONObject: status)
            let report = try #require(StatusReport(json: Array(data)), "\(name)")
            let written = try JSONSerialization.jsonObject(with: Data(report.json.utf8))
            #expect(members(of: status) == members(of: written), "\(name)")
        }
    }

    @Test func `each says what the diagnosis says of such a worker`() throws {
        let (statuses, states) = (try Self.statuses(), Self.states())
        #expect(Set(statuses.keys) == Set(states.keys))
        for (name, status) in statuses {
            let data = try JSONSerialization.data(withJSONObject: status)
            let shown = try #require(StatusReport(json: Array(data)), "\(name)")
            let said = StatusReport(try #require(states[name]))
            #expect(shown.phase == said.phase, "\(name)")
            #expect(shown.summary == said.summary, "\(name)")
            #expect(shown.problems == said.problems, "\(name)")
            #expect(shown.breakers == said.breakers, "\(name)")
            #expect(shown.restrictions == said.restrictions, "\(name)")
        }
    }
}
