// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// A backlog of deferred pushes that is larger than the memory of the worker that owns it.
@Suite(
    .serialized,
    .fleet(TestPlan(registrationGrace: .milliseconds(200), deferredMax: 1000)))
struct `A backlog of deferred pushes` {
    private let fleet: Fleet
    private let writer: DeferredWriter

    init() throws {
        fleet = try #require(Fleet.current)
        writer = try DeferredWriter(fleet)
    }

    private func registered(_ app: String, count: Int) throws -> [TestToken] {
        let tokens = (0..<count).map { _ in TestToken() }
        let subject = "backlog-\(UUID().uuidString)"
        try fleet.register(
            stride(from: 0, to: count, by: 50).map { first in
                .controls(
                    Array(tokens[first..<min(first + 50, count)]), show: [subject], app: app)
            })
        return tokens
    }

    /// Defers a push to each of the tokens.
    private func deferPushes(to tokens: [TestToken], of app: String) throws {
        let push = DeferredPush(
            notBefore: Now.current.wall, expiresAt: Now.current.wall + .seconds(7200),
            tokenClass: .control)
        try writer.write(
            tokens.map { "production/\(app).push-type.controls/\($0.hex)" }, push)
    }

    private func accepted(_ tokens: [TestToken]) throws -> [String: Int] {
        let wanted = Set(tokens.map(\.hex))
        return try fleet.answers().filter { $0.status == 200 && wanted.contains($0.token) }
            .reduce(into: [:]) { $0[$1.token, default: 0] += 1 }
    }

    @Test func `one that is paused does not stop another app's, and each is sent once in the end`()
        async throws
    {
        let paused = try registered(TestApp.home, count: 3000)
        let others = try registered(TestApp.garden, count: 200)
        let witness = try registered(TestApp.garden, count: 1)
        try await fleet.registrationsApplied()
        let pause = try await fleet.command(["pause", "--app", TestApp.home])
        #expect(pause.status == 0)
        try await Task.sleep(for: .seconds(2))
        try deferPushes(to: paused, of: TestApp.home)
        try deferPushes(to: others, of: TestApp.garden)
        try await fleet.eventually("the other app's pushes", within: .seconds(40)) {
            try accepted(others).count == others.count
        }
        #expect(try accepted(paused).isEmpty)
        let resume = try await fleet.command(["resume", "--app", TestApp.home])
        #expect(resume.status == 0)
        try await fleet.eventually("what was paused", within: .seconds(60)) {
            try accepted(paused).count == paused.count
        }
        try await fleet.replaceWorker()
        try deferPushes(to: witness, of: TestApp.garden)
        try await fleet.eventually("a push after the restart", within: .seconds(60)) {
            try accepted(witness).count == 1
        }
        #expect(try accepted(paused + others).values.allSatisfy { $0 == 1 })
    }
}
