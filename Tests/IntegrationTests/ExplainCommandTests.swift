// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

@Suite(.serialized, .fleet())
struct `Explain on the command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private func url() async throws -> String {
        let worker = fleet.workers[0]
        try await fleet.eventually("the listener") { worker.adminPort != nil }
        return "http://127.0.0.1:\(try #require(worker.adminPort))"
    }

    private func explain(_ arguments: String..., input: String = "") async throws -> CommandResult {
        try await fleet.run(["explain", try await url()] + arguments, input: input)
    }

    /// An installation whose first control is gone and whose second is well, and which has a third
    /// without a token.
    private func installation() async throws -> (name: String, dead: TestToken, well: TestToken) {
        let (dead, well) = (TestToken(), TestToken())
        let name = UUID().uuidString
        let subject = "door-\(name)"
        var draft = RegistrationDraft.controls([dead, well], show: [subject], installation: name)
        draft.registeredAt = Now.current.wall + .seconds(-60)
        draft.targets.append(
            RegistrationDraft.Target(
                tokenClass: .control, token: nil,
                shows: [RegistrationDraft.Show(kind: "lamp", subjects: [subject])]))
        try fleet.register(draft)
        try await fleet.registrationsApplied()
        fleet.simulator.perform(.rules([.gone(dead, at: Now.current.wall)]))
        defer { fleet.simulator.perform(.rules([])) }
        try await fleet.change(subject, heardBy: well)
        try await fleet.eventually("the answer") { !fleet.requests(for: dead).isEmpty }
        return (name, dead, well)
    }

    @Test func `explain says why a phone got nothing, and what each push came to`() async throws {
        let (name, dead, well) = try await installation()
        let result = try await explain("--installation", name)
        #expect(result.status == 0)
        result.expect(
            "Installation \(name): 2 tokens.", "Token \(dead.name) (control of ", "kind test",
            "of installation \(name), handler Controls:", "  Suppressed since 2",
            "because APNs answered 410 Unregistered. It gets pushes again when",
            "Token \(well.name)", "APNs accepted a push (apns-id ",
            "APNs answered 410 Unregistered to a controls push: the token is dead")
        #expect(!result.output.contains(dead.hex) && !result.output.contains(well.hex))
        #expect(!result.output.contains("no token yet"))

        let bySubject = try await explain("--subject", "door-\(name)", "--app", TestApp.home)
        bySubject.expect("Subject door-\(name): 2 tokens.", "Suppressed since 2")
        let byToken = try await explain("--token-id", dead.name, "--json")
        byToken.expect("\"state\":\"suppressed\"", "\"reason\":\"Unregistered\"")
        #expect(!byToken.output.contains(dead.hex) && !byToken.output.contains(well.name))

        // With Kafka's registrations.
        let inKafka = try await fleet.command(
            ["explain", try await url(), "--token-id", dead.name])
        inKafka.expect(
            "of installation \(name), handler Controls:",
            "Its control of kind lamp has no token yet")
    }

    @Test func `explain shows what workers know while Kafka is away`() async throws {
        let kafka = ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"]
        let question = ["explain", try await url(), "--subject", "nobody's"]
        let fleet = fleet
        // Side by side, since each of them waits before it gives up.
        async let lines = fleet.command(question, changing: kafka)
        async let members = fleet.command(question + ["--json"], changing: kafka)
        // Where no worker answers, that is the failure.
        async let nobody = fleet.command(
            ["explain", "http://127.0.0.1:1", "--subject", "door"], changing: kafka)
        let result = try await lines
        #expect(result.status == 1)
        result.expect(
            "Subject nobody's: 0 tokens.", "The registrations in Kafka could not be read",
            "127.0.0.1:1")
        let json = try await members
        #expect(json.status == 1)
        json.expect("\"tokens\":[]", "The registrations in Kafka could not be read")
        #expect(try await nobody.status == 69)
    }

    @Test func `explain shows what Kafka has of an app that the configuration lacks`() async throws
    {
        let name = UUID().uuidString
        var draft = RegistrationDraft.controls([TestToken()], show: ["door"], installation: name)
        draft.app = "com.example.Stranger"
        try fleet.register(draft)
        let question = ["explain", "--installation", name, "--app"]
        let result = try await fleet.command(question + ["com.example.Stranger"])
        #expect(result.status == 0)
        result.expect(
            "'com.example.Stranger' is no app of this configuration's apns.credentials, which have",
            TestApp.home, "Installation \(name): 1 registration of that app in Kafka.",
            "No worker can read it: no credential serves this app")
        let nothing = try await fleet.command(question + ["com.example.Strangre"])
        #expect(nothing.status == 64)
        nothing.expect("is no app of this configuration's", "is it misspelt?")
    }

    @Test func `explain says whom a record would reach, and sends nothing`() async throws {
        let (name, dead, well) = try await installation()
        let before = fleet.requests(for: well).count
        let result = try await explain(
            "--key", "door-\(name)", "--event", "-", "--topic", fleet.topics[.events],
            input: #"{"kinds":["test"]}"#)
        #expect(result.status == 0)
        result.expect(
            "It would reach 1 of 2 that show it.", "A controls push to 1:", "token \(well.name)",
            "No push to 1: they are suppressed.", "token \(dead.name)")
        let orders = try await explain(
            "--event", "-", "--topic", fleet.topics[.orders], input: #"{"orderId":7}"#)
        orders.expect("subject order-7 of", "Nobody shows it")
        let broken = try await explain(
            "--event", "-", "--topic", fleet.topics[.events], input: "{")
        broken.expect("cannot be read (invalidJSON)")
        #expect(!broken.output.contains(".."))
        let folder = try await explain("--event", ".", "--topic", fleet.topics[.events])
        #expect(folder.status == 78)
        folder.expect("--event: . is a folder")
        #expect(broken.status == 0)
        try await fleet.registrationsApplied()
        #expect(fleet.requests(for: well).count == before)
    }

    @Test func `explain ends with a code for who does not answer, and a remedy for who asks`()
        async throws
    {
        let gone = "http://127.0.0.1:1"
        let alone = try await fleet.run(["explain", gone, "--subject", "door"])
        #expect(alone.status == 69)
        alone.expect(gone, "admin.port")
        let half = try await explain(gone, "--subject", "nobody's")
        #expect(half.status == 1)
        half.expect("Subject nobody's: 0 tokens.", gone)
        let record = try await explain(gone, "--key", "door", "--topic", fleet.topics[.events])
        #expect(record.status == 1)
        record.expect("subject door of", gone)
        let wrong = try await explain("--installation", "a/b")
        #expect(wrong.status == 64)
        wrong.expect("they are parts of a record's key")
        #expect(try await explain().status == 64)
        let stranger = try await explain("--subject", "door", "--app", "com.example.Nobody")
        #expect(stranger.status == 64)
        stranger.expect("'com.example.Nobody' is no app of this worker's", TestApp.home)
        let replaced = try await explain("--key", "a\u{FFFD}")
        #expect(replaced.status == 64)
        replaced.expect("--key is not UTF-8")

        let page = try await fleet.run(
            ["--silent", "--include", "--max-time", "40", "\(try await url())/explain?subject=a"],
            program: "/usr/bin/curl")
        page.expect("HTTP/1.1 200", "application/json", "nosniff", "\"tokens\":[]")
        #expect(page.status == 0)
    }
}
