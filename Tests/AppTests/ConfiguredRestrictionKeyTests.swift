// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Pipeline
internal import PushModel
import Testing

@testable import Worker

@Suite struct `The key of configured restrictions` {
    @Test(arguments: [
        (
            "pause app=com.example.Home",
            ConfiguredRestriction(.pause, .pushes(app: "com.example.Home", tokenClass: nil))
        ),
        (
            "limit class=widget rate=500/s",
            ConfiguredRestriction(
                .limit(perSecond: 500), .pushes(app: nil, tokenClass: .widget))
        ),
        (
            "drop app=com.example.Home class=control",
            ConfiguredRestriction(
                .drop, .pushes(app: "com.example.Home", tokenClass: .control))
        ),
        (
            "pause topic=lamplighter.events",
            ConfiguredRestriction(.pause, .topic("lamplighter.events"))
        ),
        (
            "drop app=com.example.Home subject=door 42, class=x",
            ConfiguredRestriction(
                .drop, .subject(Array("door 42, class=x".utf8), app: "com.example.Home"))
        ),
    ])
    func `a line says what is restricted`(
        line: String, restriction: ConfiguredRestriction
    ) throws {
        let configuration = try configuration("planning: {restrictions: ['\(line)']}")
        #expect(configuration.planning.restrictions == [restriction])
        #expect(configuration.description.contains("planning.restrictions: [\(line)]"))
        #expect(WorkerPlan(configuration).pipeline.restrictions == [restriction])
    }

    @Test(arguments: [
        ("stop app=com.example.Home", "must be pause"), ("pause", "must be pause"),
        ("pause app=com.example.Elsewhere", "no credential signs for"),
        ("drop app=com.example.Elsewhere subject=door", "no credential signs for"),
        ("pause topic=elsewhere", "no event topic"), ("pause class=phone", "no class of token"),
        ("pause app=com.example.Home app=com.example.Home", "app twice"),
        ("pause app=com.example.Home subject=door", "which there is not"),
        ("limit topic=lamplighter.events rate=5/s", "which there is not"),
        ("limit class=widget", "write rate=500/s"), ("pause class=widget rate=5/s", "write rate"),
        ("limit class=widget rate=0/s", "from 1 to 1000000"),
        ("pause topic=lamplighter.events class=widget", "names too much"),
    ])
    func `what restricts nothing is a problem`(line: String, words: String) throws {
        let found = problems(in: "planning: {restrictions: ['\(line)']}")
        #expect(found.count == 1 && found[0].contains(words), "\(found)")
    }
}
