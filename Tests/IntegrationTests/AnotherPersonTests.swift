// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// A real worker with an embedded Kafka, of whose pushes to devices an operator pauses all.
@Suite(
    .serialized,
    .fleet(TestPlan(workers: 1, registrationGrace: .milliseconds(200), holdMax: .seconds(5))))
struct `A phone on which another person signs in` {
    private let fleet: Fleet
    private let phone = TestToken()
    private let scope = ["--app", TestApp.home, "--class", "device"]

    init() throws { fleet = try #require(Fleet.current) }

    private func signedIn(_ person: String) -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: .production, app: TestApp.home, installation: "of-\(person)",
            handler: "App")
        draft.targets = [
            RegistrationDraft.Target(
                tokenClass: .device, token: phone.bytes,
                shows: [RegistrationDraft.Show(kind: nil, subjects: ["inbox-\(person)"])])
        ]
        return draft
    }

    private func alert(_ person: String, _ text: String) throws {
        var event = EventDraft()
        event.subject = "inbox-\(person)"
        event.payload = Array(#"{"aps":{"alert":"\#(text)"}}"#.utf8)
        try fleet.emit(event)
    }

    /// Waits until explain says this of the phone so many times.
    private func explained(_ text: String, times: Int = 1) async throws {
        let port = try await fleet.adminPort(of: fleet.workers[0])
        let patience = Patience(.seconds(90))
        while true {
            let result = try await fleet.run(
                ["explain", "http://127.0.0.1:\(port)", "--token-id", phone.name])
            if result.lines.count(where: { $0.contains(text) }) >= times { return }
            try #require(!patience.isOver, "not \(text): \(result.output)")
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    @Test func `is sent no alert that waited for the person before, from memory or the topic`()
        async throws
    {
        try fleet.register(signedIn("alice"))
        try await fleet.registrationsApplied()
        let paused = try await fleet.command(["pause"] + scope)
        try #require(paused.status == 0, "\(paused.output)")
        try await fleet.statusSays("pause", of: fleet.workers[0], within: .seconds(10))
        try alert("alice", "first for Alice")
        try await explained("waits in the deferred topic")
        try alert("alice", "second for Alice")
        try await explained("stands in the queue")
        // The other way round the token is registered by nobody for a moment, which ends its pushes too,
        // as unregistered.
        try fleet.register(signedIn("bob"))
        try await fleet.registrationsApplied()
        try fleet.removeRegistration(signedIn("alice"))
        try await explained("had ceased to show the subject")

        _ = try await fleet.command(["resume"] + scope)
        try alert("bob", "for Bob")
        try await fleet.eventually("Bob's alert") { fleet.accepted(phone) == 1 }
        // The deferred one is judged once more, half a minute after its turn has come.
        try await explained("had ceased to show the subject", times: 2)
        let bodies = fleet.requests(for: phone).map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == [#"{"aps":{"alert":"for Bob"}}"#])
    }
}
