// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import LinuxIO
import OpenSSL
import PushModel
import RecordFormats
import Testing

/// What `lamplighter pause`, `drop`, `limit` and `resume` do to two running workers.
@Suite(
    .serialized,
    .fleet(TestPlan(workers: 2, registrationGrace: .milliseconds(200), holdMax: .seconds(2))))
struct `Restriction commands and a running fleet` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private func run(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(arguments)
    }

    /// Runs the command, and waits until every worker's status says this.
    private func run(_ arguments: [String], until text: String) async throws {
        let result = try await fleet.command(arguments)
        try #require(result.status == 0, "\(result.output)")
        for worker in fleet.workers where worker.isRunning {
            try await fleet.statusSays(text, of: worker)
        }
    }

    private func resume() async throws {
        _ = try await run("resume", "--all")
        let patience = Patience()
        for worker in fleet.workers where worker.isRunning {
            var text = ""
            while text.isEmpty || text.contains("restricted") {
                try #require(!patience.isOver, "a worker does not follow")
                try await Task.sleep(for: .milliseconds(200))
                text = try await fleet.statusText(of: worker)
            }
        }
    }

    @Test func `a paused app's pushes wait through a restart, others go on, and none is lost`()
        async throws
    {
        let (paused, other) = (TestToken(), TestToken())
        try fleet.register(.controls([paused], show: ["door"]))
        try fleet.register(.controls([other], show: ["bed"], app: TestApp.garden))
        try await fleet.registrationsApplied()
        try await run(
            ["pause", "--app", TestApp.home, "--reason", "slow backend", "--by", "anna"],
            until: "app \(TestApp.home): pause, by anna")
        let listed = try await run("restrictions")
        listed.expect("pause  app \(TestApp.home)  by anna  until it is resumed  \"slow backend\"")
        #expect(listed.lines.last == "1 restriction")

        let port = try await fleet.adminPort(of: fleet.workers[0])
        let explained = try await fleet.run(
            ["explain", "http://127.0.0.1:\(port)", "--subject", "door"])
        explained.expect("until it is resumed; \"slow backend\")")

        try fleet.emit("door")
        var bed = EventDraft()
        bed.subject = "bed"
        bed.app = TestApp.garden
        try fleet.emit(bed)
        try await fleet.eventually("the other app's push") { fleet.accepted(other) == 1 }
        try await fleet.replaceWorker()
        // What is under way while its partition changes its owner may be sent by both, so the push
        // goes only when it waits in Kafka and every partition has an owner.
        let positions = try fleet.positions()
        try await fleet.eventually("the pause to let the event end") {
            try fleet.lags(positions).allSatisfy { $0 <= 0 }
        }
        try await fleet.isDividedAmongWorkers()
        let waiting = try await run("deferred", "list", "--app", TestApp.home)
        #expect(waiting.lines.last?.hasPrefix("1 push,") == true, "\(waiting.output)")
        #expect(fleet.accepted(paused) == 0)
        try await resume()
        try await fleet.eventually("the push that waited") { fleet.accepted(paused) >= 1 }
        try await Task.sleep(for: .seconds(1))
        #expect(fleet.accepted(paused) == 1)
    }

    @Test func `the events of a paused topic stay in Kafka, and those of others are read`()
        async throws
    {
        let (door, order) = (TestToken(), TestToken())
        try fleet.register(.controls([door], show: ["door-1"]))
        try fleet.register(.controls([order], show: ["order-77"]))
        try await fleet.registrationsApplied()
        try await run(
            ["pause", "--topic", fleet.topics[.orders]],
            until: "topic \(fleet.topics[.orders]): pause")
        try fleet.write(to: .orders, key: "77", value: #"{"orderId":77}"#)
        try await fleet.change("door-1", heardBy: door)
        try await Task.sleep(for: .seconds(2))
        #expect(fleet.accepted(order) == 0)
        // Whoever gets the partitions leaves them in Kafka too.
        try await fleet.replaceWorker()
        try await fleet.change("door-1", heardBy: door)
        try await Task.sleep(for: .seconds(2))
        #expect(fleet.accepted(order) == 0)
        try await resume()
        try await fleet.eventually("the push of the order") { fleet.accepted(order) == 1 }
    }

    @Test func `what is dropped is counted and never sent`() async throws {
        let (token, witness) = (TestToken(), TestToken())
        var widget = RegistrationDraft.controls([token], show: ["lamp"])
        widget.targets[0].tokenClass = .widget
        try fleet.register(widget)
        try fleet.register(.controls([witness], show: ["lamp"]))
        try await fleet.registrationsApplied()
        try await run(["drop", "--class", "widget"], until: "class widget: drop")
        try await fleet.change("lamp", heardBy: witness)
        try await resume()
        try await run(
            ["drop", "--app", TestApp.home, "--subject", "lamp"], until: "subject \"lamp\": drop")
        let before = fleet.accepted(witness)
        try fleet.emit("lamp")
        try await Task.sleep(for: .seconds(2))
        #expect(fleet.accepted(witness) == before && fleet.accepted(token) == 0)
        try await resume()
        try await fleet.change("lamp", heardBy: token)
    }

    @Test func `a limit holds for all workers together`() async throws {
        let tokens = (0..<120).map { _ in TestToken() }
        let subjects = tokens.indices.map { "limited-\($0)" }
        try fleet.register(
            tokens.enumerated().map { .controls([$1], show: [subjects[$0]]) })
        try await fleet.registrationsApplied()
        try await run(
            ["limit", "--app", TestApp.home, "--class", "control", "--rate", "20/s"],
            until: "limit to 20/s")
        let (start, begun) = (ContinuousClock.now, SystemClock.wallNanoseconds())
        for subject in subjects { try fleet.emit(subject) }
        try await fleet.eventually("all pushes") {
            tokens.allSatisfy { fleet.accepted($0) >= 1 }
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        // Six seconds' worth; each worker may begin with a tenth of a second's.
        #expect(seconds > 4.5, "\(seconds) s")
        // A limit that does not hold at first is not seen in the time that all take together.
        let names = Set(tokens.map(\.hex))
        let early = try fleet.answers().count {
            names.contains($0.token) && $0.t < begun + 2_000_000_000
        }
        #expect(early <= 2 * 20 + 2 * 2, "\(early) pushes in the first two seconds")
        try await resume()
    }

    @Test func `a rollout's steps are followed by both senders at the same event`() async throws {
        let tokens = (0..<40).map { _ in TestToken() }
        let subjects = tokens.indices.map { "moving-\($0)" }
        try fleet.register(tokens.enumerated().map { .controls([$1], show: [subjects[$0]]) })
        try await fleet.registrationsApplied()
        let ours = tokens.filter { $0.number < 50 }
        let theirs = tokens.filter { $0.number >= 50 }
        // The one that this fleet sends to in any case.
        let named = try #require(theirs.first)

        try await step(to: 0, ["--token-id", named.id, "--class", "control"])
        for subject in subjects { try fleet.emit(subject) }
        try await fleet.eventually("the named token's push") { fleet.accepted(named) == 1 }
        let early = try await run(
            "rollout", "--app", TestApp.home, "--percent", "7", "--from", "2026-01-01T00:00:00Z")
        #expect(early.status != 0)
        try await step(to: 50) {
            // Written before the step, and read before or after it.
            for subject in subjects { try fleet.emit(subject) }
        }
        for subject in subjects { try fleet.emit(subject) }
        try await fleet.eventually("the pushes of the step") {
            ours.allSatisfy { fleet.accepted($0) == 1 }
        }
        try await fleet.eventually("the named token's third push") { fleet.accepted(named) == 3 }
        try await Task.sleep(for: .seconds(1))
        #expect(ours.allSatisfy { fleet.accepted($0) == 1 })
        #expect(theirs.dropFirst().allSatisfy { fleet.accepted($0) == 0 })

        let all = try await run("resume", "--all")
        all.expect("rollout of app \(TestApp.home) stays")
        let refused = try await run("resume", "--rollout", TestApp.home)
        #expect(refused.status == 1 && refused.output.contains("is at 50 %"))
        try await step(to: 100)
        let ended = try await run("resume", "--rollout", TestApp.home)
        #expect(ended.status == 0, "\(ended.output)")
        try await resume()
        for subject in subjects { try fleet.emit(subject) }
        try await fleet.eventually("everybody's push") {
            theirs.dropFirst().allSatisfy { fleet.accepted($0) == 1 }
        }
    }

    /// Takes the rollout a step on, and waits until it is in force.
    private func step(
        to percent: Int, _ options: [String] = [], meanwhile: () throws -> Void = {}
    ) async throws {
        let from = WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000) + .seconds(15)
        try await run(
            ["rollout", "--app", TestApp.home, "--percent", "\(percent)", "--from", from.rfc3339]
                + options,
            // The first step counts for events of before, too.
            until: percent == 0 ? "rollout to 0 %" : "\(percent) % from \(from.rfc3339)")
        try meanwhile()
        while WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000) <= from {
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    @Test func `a restriction that has ended is removed by resume, and once`() async throws {
        let gone = ["--app", TestApp.home, "--subject", "gone"]
        for removal in [["resume"] + gone, ["resume", "--all"]] {
            let dropped = try await fleet.command(["drop"] + gone + ["--for", "1s"])
            try #require(dropped.status == 0, "\(dropped.output)")
            try await Task.sleep(for: .milliseconds(1100))
            let listed = try await run("restrictions")
            #expect(listed.lines.last == "0 restrictions")
            let resumed = try await fleet.command(removal)
            #expect(resumed.status == 0)
            resumed.expect("resumed app \(TestApp.home), subject \"gone\"")
        }
        let again = try await fleet.command(["resume"] + gone)
        #expect(again.status == 1)
        let nothing = try await run("resume", "--all")
        nothing.expect("nothing is restricted")
    }

    @Test func `what the configuration has no longer is resumed all the same`() async throws {
        for scope in [["--app", TestApp.garden], ["--topic", fleet.topics[.orders]]] {
            let paused = try await fleet.command(["pause"] + scope)
            try #require(paused.status == 0, "\(paused.output)")
            let resumed = try await fleet.command(
                ["resume"] + scope, changing: [scope[1]: "\(scope[1])2"])
            #expect(resumed.status == 0)
            resumed.expect("resumed ")
        }
        try await resume()
    }

    @Test func `the restrictions of the configuration are listed, and marked`() async throws {
        let restrictions = "limit class=widget rate=7/s, drop topic=\(fleet.topics[.orders])"
        let configured = ["\nplanning:": "\nplanning:\n  restrictions: [\(restrictions)]"]
        let listed = try await fleet.command(["restrictions"], changing: configured)
        listed.expect(
            "limit to 7/s  class widget  by planning.restrictions",
            "drop  topic \(fleet.topics[.orders])  by planning.restrictions")
        #expect(listed.lines.last == "2 restrictions, 2 of them of the configuration")
        let objects = try await fleet.command(
            ["restrictions", "--json"], changing: configured
        ).objects()
        let authors = objects.map { $0["by"] as? String }
        #expect(authors == ["planning.restrictions", "planning.restrictions", nil])
        let summary = objects.last?["summary"] as? [String: Int]
        #expect(summary == ["restrictions": 2, "configured": 2, "unreadable": 0])
        let resumed = try await fleet.command(["resume", "--all"], changing: configured)
        #expect(
            resumed.lines == [
                "class widget stays restricted by planning.restrictions",
                "topic \(fleet.topics[.orders]) stays restricted by planning.restrictions",
            ])
    }

    @Test func `a command says what it replaces, and what stays of the configuration`()
        async throws
    {
        let first = try await run("pause", "--class", "widget", "--by", "anna", "--for", "1h")
        #expect(first.status == 0 && first.lines.count == 1, "\(first.output)")
        let second = try await run("limit", "--class", "widget", "--rate", "9/s")
        second.expect("limited class widget", "replaces: paused by anna since ", "Z, until ")
        let restrictions = ["\nplanning:": "\nplanning:\n  restrictions: [drop class=widget]"]
        let third = try await fleet.command(
            ["pause", "--app", TestApp.home, "--class", "widget"], changing: restrictions)
        #expect(
            third.lines.dropFirst() == [
                "stays: class widget, dropped by planning.restrictions, which counts before this"
            ])
        try await resume()
    }

    @Test(arguments: [
        (["pause"], 64, "name one of"),
        (["pause", "--app", "com.example.Elsewhere"], 78, "no credential serves"),
        (["pause", "--class", "phone"], 64, "is not a class of token"),
        (["pause", "--topic", "elsewhere"], 78, "is none of kafka.events"),
        (["pause", "--app", TestApp.home, "--subject", "s"], 64, "drop it, or pause the app"),
        (["pause", "--app", TestApp.home, "--for", "0s"], 64, "from 1s to 366d"),
        (["pause", "--app", TestApp.home, "--for", "400d"], 64, "from 1s to 366d"),
        (
            ["limit", "--app", TestApp.home, "--rate", "0"], 64,
            "from 1 to 1,000,000, such as 500/s; to stop pushes use lamplighter pause"
        ),
        (["limit", "--class", "widget", "--rate", "1000001/s"], 64, "from 1 to 1,000,000"),
        (["limit", "--class", "widget", "--rate", "fast"], 64, "from 1 to 1,000,000"),
        (["resume", "--app", TestApp.garden], 1, "is not restricted"),
        (["resume", "--app", "com.example.Elsewhere"], 1, "is not restricted"),
        (["resume", "--topic", "elsewhere"], 1, "is not restricted"),
        (["pause", "--class", "widget", "--by", "planning.restrictions"], 64, "another name"),
    ])
    func `what cannot be meant is refused`(
        arguments: [String], status: Int32, words: String
    ) async throws {
        let result = try await fleet.command(arguments)
        #expect(result.status == status)
        result.expect(words)
    }

    @Test func `a restriction that Kafka is not there to take says so at once`() async throws {
        let kafka = ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"]
        let watch = Stopwatch()
        let result = try await fleet.command(["pause", "--app", TestApp.home], changing: kafka)
        #expect(watch.time < .seconds(9))
        #expect(result.status == 69)
        result.expect("cannot tell what it replaces: ")
    }

    /// Without a Kafka, whose absence would be told instead if it were asked first.
    @Test(arguments: [
        (["resume"], "name what to resume"),
        (["resume", "--by", "anna"], "name what to resume"),
        (["resume", "--all", "--class", "widget"], "--all lifts everything"),
        (["resume", "--class", "phone"], "is not a class of token"),
        (["resume", "--app", TestApp.home, "--topic", "events"], "name one of"),
    ])
    func `what resume cannot mean is told before Kafka is asked`(
        arguments: [String], words: String
    ) async throws {
        let result = try await fleet.command(
            arguments, changing: ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"])
        #expect(result.status == 64)
        result.expect(words)
    }
}

extension TestToken {
    private var hash: UInt64 { bytes.withUnsafeBytes { SHA256Digest.prefix(of: $0) } }
    /// By which a rollout has it or has it not.
    fileprivate var number: Int { Rollout.number(hash) }
    fileprivate var id: String { Hexadecimal.encode(SHA256Digest.of(bytes).prefix(8)) }
}
