// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
import Testing

@testable import Worker

@Suite struct `The keys of canaries` {
    private func plan(
        _ yaml: String, _ variables: [String: String] = [:]
    ) throws -> WorkerPlan {
        WorkerPlan(try configuration(yaml, variables))
    }

    private static let twoApps = [
        "LAMPLIGHTER_APNS_CREDENTIALS_HOME_APPS": "com.example.Home,com.example.Garden"
    ]

    @Test func `none is written by default`() throws {
        let plan = try plan("canary: {app: com.example.Home, subject: mine}")
        #expect(plan.pipeline.canary == nil)
        #expect(plan.canaryBinding == nil && plan.canariesProduced == nil)
    }

    @Test func `they are about one subject of the only app, in the topic that shards go to`() throws
    {
        let plan = try plan("canary: {every: 1m}")
        let canary = try #require(plan.pipeline.canary)
        #expect(canary.every == .seconds(60) && canary.app == "com.example.Home")
        #expect(canary.subject == "lamplighter-canary")
        #expect(plan.eventTopics[try #require(plan.canaryBinding)] == "lamplighter.events")
        let produced = try #require(plan.canariesProduced)
        #expect(plan.producedTopics[produced] == "lamplighter.events")
        #expect(plan.producedTopics.count == 4)
    }

    @Test func `two workers tell their own from those of the other`() throws {
        let workers = try (1...2).map { _ in try plan("canary: {every: 1m}").pipeline.canary?.worker
        }
        #expect(workers[0] != workers[1])
    }

    @Test(arguments: [
        ("{a: {delay: 1s}, b: {}}", "b"), ("{a: {decode: key, app: com.example.Home}, b: {}}", "b"),
        ("{a: {subject: '{/id}'}, b: {}}", "b"), ("{a: {app: com.example.Garden}, b: {}}", "b"),
        ("{b: {app: com.example.Home}}", "b"), ("{c: {}, b: {}}", "b"),
    ])
    func `they go to a topic that sends them at once`(events: String, topic: String) throws {
        let plan = try plan(
            "canary: {every: 10s, app: com.example.Home}\nkafka: {events: \(events)}", Self.twoApps)
        #expect(plan.eventTopics[try #require(plan.canaryBinding)] == topic)
        #expect(plan.producedTopics[try #require(plan.canariesProduced)] == topic)
    }

    @Test(
        arguments: [
            ("canary: {every: 9s}", [:], "canary.every (line 1): "),
            ("canary: {every: 2h}", [:], "canary.every (line 1): "),
            ("canary: {every: 1m}", twoApps, "canary.app: is missing"),
            (
                "canary: {every: 1m, app: com.example.Hom}", [:],
                "canary.app: is com.example.Hom, which no"
            ),
            ("canary: {every: 1m, subject: ''}", [:], "canary.subject (line 1): "),
            (
                "canary: {every: 1m}\nkafka: {events: {a: {decode: key}}}", [:],
                "canary.every: has no topic to write to"
            ),
            (
                "canary: {every: 1m}\nkafka: {events: {a: {delay: 5s}}}", [:],
                "canary.every: has no topic to write to"
            ),
            ("canary: {evry: 1m}", [:], "canary.evry (line 1): "),
        ] as [(String, [String: String], String)])
    func `what cannot be is one problem`(
        yaml: String, variables: [String: String], start: String
    ) {
        let found = problems(in: yaml, variables)
        #expect(found.count == 1 && found[0].hasPrefix(start), "\(found)")
    }
}
