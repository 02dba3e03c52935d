// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
import Testing

@testable import Worker

@Suite struct `The keys of minimum gaps` {
    private func gaps(_ text: String) throws -> MinimumGaps {
        WorkerPlan(try configuration(text)).pipeline.minimumGaps
    }

    @Test func `background pushes are half an hour apart by default, and no others are`() throws {
        let gaps = try gaps("")
        #expect(gaps.gap(.background, app: "com.example.Home") == .seconds(1800))
        let others = PushType.all.indices.map { PushType(rawValue: UInt8($0)) }
            .filter { $0 != .background }
        #expect(others.allSatisfy { gaps.gap($0, app: "com.example.Home") == .zero })
    }

    @Test func `an app may have other gaps than the rest`() throws {
        let gaps = try gaps(
            "planning: {minimumGap: {widgets: 15m, apps: {com.example.Home: {widgets: 5m}}}}")
        #expect(gaps.gap(.widgets, app: "com.example.Home") == .seconds(300))
        #expect(gaps.gap(.widgets, app: "com.example.Other") == .seconds(900))
        #expect(gaps.gap(.background, app: "com.example.Home") == .seconds(1800))
    }

    @Test func `an app that no credential signs for is a problem`() {
        let found = problems(
            in: "planning: {minimumGap: {apps: {com.example.Elsewhere: {widgets: 5m}}}}")
        #expect(
            found.count == 1
                && found[0].hasPrefix(
                    "planning.minimumGap.apps[com.example.Elsewhere]: names an app"),
            "\(found)")
    }
}
