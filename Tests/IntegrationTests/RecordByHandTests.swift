// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// Commands that write one record or send one push.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `One record or push by hand` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    @Test func `push prints the answer, and its exit code says whether it is 200`() async throws {
        let token = TestToken()
        let push = ["push", "--environment", "production", "--app", TestApp.home]
        let accepted = try await fleet.command(push, input: token.hex + "\n")
        #expect(accepted.status == 0)
        let request = try #require(fleet.requests(for: token).first)
        #expect(request["apns-push-type"] == "controls")
        #expect(accepted.lines.last == "200 accepted, apns-id \(request["apns-id"] ?? "?")")
        // No token in any output of ours.
        #expect(!accepted.output.contains(token.hex))

        fleet.simulator.perform(
            .rules([
                ScriptedRule(tokenPrefix: token.hex, answer: .reason(410, "Unregistered"))
            ]))
        defer { fleet.simulator.perform(.rules([])) }
        let gone = try await fleet.command(push, input: token.hex + "\n")
        #expect(gone.status == 1)
        gone.expect("410 Unregistered, apns-id ", ": the token is dead")
    }

    /// As check does. Side by side, since each of them waits before it gives up.
    @Test func `push says why nobody answers, and whether the configuration is wrong`() async throws
    {
        let port = "port: \(fleet.simulator.port(of: .production)!),"
        let caFile = "caFile: \(fleet.directory.appending(path: "ca.pem").path)"
        let push = ["push", "--environment", "production", "--app", TestApp.home]
        let line = TestToken().hex + "\n"
        async let away = fleet.command(push, changing: [port: "port: 1,"], input: line)
        async let unverified = fleet.command(
            push, changing: [caFile: "caFile: /etc/passwd"], input: line)
        for (result, status, words) in [
            (try await away, 69, "APNs production (127.0.0.1:1) takes no connection"),
            (try await unverified, 78, "cannot be verified: apns.caFile must name"),
        ] {
            #expect(result.status == status, "\(result.output)")
            result.expect(words)
        }
    }

    @Test func `push says that APNs may have what was sent and not answered`() async throws {
        let token = TestToken()
        fleet.simulator.perform(
            .rules([ScriptedRule(tokenPrefix: token.hex, answer: .reset(2))]))
        defer { fleet.simulator.perform(.rules([])) }
        let lost = try await fleet.command(
            ["push", "--environment", "production", "--app", TestApp.home], input: token.hex + "\n")
        #expect(lost.status == 69, "\(lost.output)")
        lost.expect("leaves the push unanswered", "APNs may have it")
    }

    @Test func `push sends the headers that a worker would`() async throws {
        let token = TestToken()
        let alert = try await fleet.command(
            [
                "push", "--environment", "production", "--app", TestApp.home, "--json", "--payload",
                #"{ "aps": {"alert": "rain"} }"#,
            ],
            changing: ["  splitAbove": "  wire: {alert: {priority: 5}}\n  splitAbove"],
            input: token.hex + "\n")
        #expect(alert.status == 0, "\(alert.output)")
        let request = try #require(fleet.requests(for: token).first)
        #expect(request["apns-push-type"] == "alert")
        #expect(request["apns-topic"] == TestApp.home)
        #expect(request["apns-priority"] == "5")
        let expiration = try #require(request["apns-expiration"].flatMap { Int64($0) })
        #expect((3000...3600).contains(expiration - Now.current.wall.seconds))
        #expect(request["apns-collapse-id"]?.count == 36)
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"aps":{"alert":"rain"}}"#)
        struct Report: Decodable {
            var status: Int
            var reason: String?
            var apnsID: String
            var headers: [String: String]
        }
        let report = try JSONDecoder().decode(
            Report.self, from: Data(try #require(alert.lines.last).utf8))
        #expect(report.status == 200 && report.reason == nil)
        #expect(report.apnsID == request["apns-id"])
        #expect(report.headers["apns-collapse-id"] == request["apns-collapse-id"])
        #expect(report.headers["apns-expiration"] == "\(expiration)")
    }

    @Test func `push with curl sends nothing, and shows a provider token only if told to`()
        async throws
    {
        let token = TestToken()
        let push = ["push", "--environment", "production", "--app", TestApp.home, "--curl"]
        let printed = try await fleet.command(push, input: token.hex + "\n")
        #expect(printed.status == 0, "\(printed.output)")
        printed.expect(
            #"--header "authorization: bearer $JWT""#, "--header 'apns-push-type: controls'",
            "--header 'apns-topic: \(TestApp.home).push-type.controls'", "/3/device/\(token.hex)'")
        #expect(!printed.output.contains("JWT='"))
        let shown = try await fleet.command(push + ["--show-token"], input: token.hex + "\n")
        shown.expect("JWT='eyJ")
        #expect(fleet.requests(for: token).isEmpty)
    }

    @Test(arguments: [
        (["--type", "background"], "neither alert nor badge nor sound"),
        (["--type", "controls"], "controls has no payload of its own"),
        (["--priority", "7"], "priority must be 1, 5 or 10"),
    ])
    func `push refuses what no worker would send`(
        _ more: [String], _ words: String
    ) async throws {
        let result = try await fleet.command(
            [
                "push", "--environment", "production", "--app", TestApp.home, "--payload",
                #"{"aps":{"alert":"rain"}}"#,
            ] + more, input: "00ff\n")
        #expect(result.status == 64)
        result.expect(words, "Usage: lamplighter push")
    }

    @Test func `emit writes to the topic that is named, and only what a worker reads`() async throws
    {
        func emit(_ arguments: [String]) async throws -> CommandResult {
            try await fleet.command(["emit"] + arguments)
        }
        let topic = fleet.topics[.events]
        let unnamed = try await emit(["door-1"])
        #expect(unnamed.status == 64)
        unnamed.expect("several events topics", topic, "Usage: lamplighter emit")
        let slip = try await emit(["door-1", "--topic", topic + "s"])
        #expect(slip.status == 64)
        slip.expect("is not among kafka.events", "the nearest there is '\(topic)'")
        let long = try await emit([String(repeating: "x", count: 300), "--topic", topic])
        #expect(long.status == 64)
        long.expect("at most 256 bytes")
        let stranger = try await emit(["door-1", "--topic", topic, "--app", "com.example.Nobody"])
        #expect(stranger.status == 78)
        stranger.expect("no credential serves app 'com.example.Nobody'")
        let written = try await emit(["door-1", "--topic", topic, "--ttl", "90s"])
        #expect(written.status == 0, "\(written.output)")
        #expect(written.lines.last == "emitted door-1 to \(topic) for \(TestApp.home)")
    }

    @Test func `register writes what the contract has, and not what a worker passes over`()
        async throws
    {
        let name = [
            "--environment", "production", "--app", TestApp.home, "--installation", "6F1C",
            "--handler", "Garage",
        ]
        func register(
            _ arguments: [String], input: String = ""
        ) async throws -> CommandResult {
            try await fleet.command(["register"] + arguments, input: input)
        }
        let nothing = try await register(name + ["--token", "00ff", "--kind", ""])
        #expect(nothing.status == 64)
        let control = try await register(
            name + ["--token", "00ff", "--subject", "s", "--on-change", "background"])
        #expect(control.status == 64)
        control.expect(
            "on-change is for classes device and location alone", "Usage: lamplighter register")
        let stranger = try await register(
            ["--environment", "production", "--app", "com.example.Nobody"] + name.dropFirst(4)
                + ["--token", "00ff", "--subject", "s"])
        #expect(stranger.status == 78)
        let bare = try await register(name + ["--kind", "k", "--subject", "s"])
        #expect(bare.status == 0)
        bare.expect("registered production/\(TestApp.home)/6F1C/Garage", "note", "no token yet")
        let whole = try await register(
            ["--file", "-"],
            input: """
                {"v":1,"environment":"sandbox","app":"\(TestApp.home)","installation":"6F1C",
                 "handler":"Garage","targets":[
                  {"class":"control","token":"00ff","shows":[{"kind":"k","subjects":["s","t"]}]},
                  {"class":"device","token":"01ff","onChange":"background","shows":[{"subjects":["s"]}]}]}
                """)
        #expect(whole.status == 0, "\(whole.output)")
        #expect(
            whole.lines.last == "registered development/\(TestApp.home)/6F1C/Garage")
        let removed = try await register(name + ["--remove"])
        #expect(removed.status == 0)
        removed.expect("removed production/")
    }
}

/// Events that name no subject, written by `emit`.
@Suite(.serialized, .fleet(TestPlan(allowsKindWide: true)))
struct `One record by hand for whole kinds` {
    @Test func `emit reloads what shows a kind, and with --all what the app shows`() async throws {
        let fleet = try #require(Fleet.current)
        let (door, lamp, widget) = (TestToken(), TestToken(), TestToken())
        func register(_ token: TestToken, _ tokenClass: TokenClass, kind: String) throws {
            var draft = RegistrationDraft(
                environment: .production, app: TestApp.home, installation: UUID().uuidString,
                handler: "Handler")
            draft.targets = [
                .init(
                    tokenClass: tokenClass, token: token.bytes,
                    shows: [.init(kind: kind, subjects: ["\(kind)-1"])])
            ]
            try fleet.register(draft)
        }
        try register(door, .control, kind: "door")
        try register(lamp, .control, kind: "lamp")
        try register(widget, .widget, kind: "lamp")
        try await fleet.registrationsApplied()
        func emit(_ arguments: String...) async throws -> CommandResult {
            try await fleet.command(
                ["emit", "--topic", fleet.topics[.events], "--app", TestApp.home] + arguments)
        }

        let ofKind = try await emit("--kind", "lamp")
        #expect(ofKind.status == 0, "\(ofKind.output)")
        #expect(ofKind.lines.last?.hasPrefix("emitted lamp to ") == true)
        try await fleet.eventually("the pushes of the kind") {
            fleet.accepted(lamp) == 1 && fleet.accepted(widget) == 1
        }
        let request = try #require(fleet.requests(for: widget).first)
        #expect(request["apns-push-type"] == "widgets")
        #expect(request["apns-topic"] == TestApp.home + ".push-type.widgets")
        #expect(
            String(decoding: request.body, as: UTF8.self) == #"{"aps":{"content-changed":true}}"#)
        #expect(fleet.accepted(door) == 0)

        let ofAll = try await emit("--all")
        #expect(ofAll.status == 0, "\(ofAll.output)")
        #expect(ofAll.lines.last?.hasPrefix("emitted all to ") == true)
        try await fleet.eventually("the pushes of the app") {
            fleet.accepted(door) == 1 && fleet.accepted(lamp) == 2 && fleet.accepted(widget) == 2
        }
        #expect(fleet.requests(for: door).first?["apns-push-type"] == "controls")
        #expect(fleet.simulator.counts.rejected == 0)
    }
}

/// Events for one installation, written by `emit`.
@Suite(.serialized, .fleet(TestPlan(allowsInstallations: true)))
struct `One record by hand for an installation` {
    @Test func `emit reaches the installation that is named, and no other that shows the same`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let (own, other) = (TestToken(), TestToken())
        let names = (own: UUID().uuidString, other: UUID().uuidString)
        for (name, token) in [(names.own, own), (names.other, other)] {
            var draft = RegistrationDraft(
                environment: .production, app: TestApp.home, installation: name, handler: "H")
            draft.targets = [
                .init(
                    tokenClass: .device, token: token.bytes,
                    shows: [.init(kind: nil, subjects: ["order-7", names.own])])
            ]
            try fleet.register(draft)
        }
        try await fleet.registrationsApplied()
        func emit(_ arguments: String...) async throws -> CommandResult {
            try await fleet.command(
                [
                    "emit", "--topic", fleet.topics[.events], "--app", TestApp.home, "--payload",
                    #"{"aps":{"alert":"Your order"}}"#,
                ] + arguments)
        }

        let told = try await emit("--installation", names.own)
        #expect(told.status == 0, "\(told.output)")
        try await fleet.eventually("the push of the installation") { fleet.accepted(own) == 1 }
        // What comes after it has come reaches both.
        let all = try await emit("order-7")
        #expect(all.status == 0, "\(all.output)")
        try await fleet.eventually("the push of the subject") {
            fleet.accepted(own) == 2 && fleet.accepted(other) >= 1
        }
        #expect(fleet.accepted(other) == 1)
        let both = try await emit("--installation", names.own, "order-7")
        #expect(both.status == 64)
    }
}
