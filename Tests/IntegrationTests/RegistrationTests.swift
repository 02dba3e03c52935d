// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import RecordFormats
import Testing

extension `One worker` {
    @Suite(.serialized) struct `follows registrations` {
        private let fleet: Fleet
        private let subject = "door-\(UUID().uuidString.prefix(8))"
        private let token = TestToken()
        private let witness = TestToken()

        init() throws { fleet = try #require(Fleet.current) }

        @Test func `a registration's snapshot replaces the one before it`() async throws {
            let removed = TestToken()
            var snapshot = RegistrationDraft.controls([removed, token], show: [subject])
            try fleet.register(snapshot)
            try await fleet.change(subject, heardBy: token)
            try await fleet.eventually("both") { fleet.accepted(removed) == 1 }
            snapshot.targets.removeFirst()
            try fleet.register(snapshot)
            try await fleet.registrationsApplied()
            try await fleet.changeTwice(subject, witness: token)
            #expect(fleet.requests(for: removed).count == 1)
        }

        @Test func `a registration's tombstone removes it`() async throws {
            try fleet.register(.controls([witness], show: [subject]))
            let registration = RegistrationDraft.controls([token], show: [subject])
            try fleet.register(registration)
            try await fleet.change(subject, heardBy: token)
            try fleet.removeRegistration(registration)
            try await fleet.registrationsApplied()
            try await fleet.changeTwice(subject, witness: witness)
            #expect(fleet.requests(for: token).count == 1)
        }

        @Test func `two handlers of one installation never touch each other's rows`() async throws {
            let (installation, other) = (UUID().uuidString, TestToken())
            var mine = RegistrationDraft.controls(
                [token], show: [subject], installation: installation, handler: "Doors")
            try fleet.register(
                .controls([other], show: [subject], installation: installation, handler: "Lights"))
            try fleet.register(mine)
            try await fleet.change(subject, heardBy: token)
            try await fleet.eventually("both") { fleet.accepted(other) == 1 }
            mine.targets = []
            try fleet.register(mine)
            try await fleet.registrationsApplied()
            try await fleet.changeTwice(subject, witness: other)
            try fleet.removeRegistration(mine)
            try await fleet.registrationsApplied()
            try await fleet.changeTwice(subject, witness: other)
            #expect(fleet.requests(for: token).count == 1)
        }

        @Test func `a registration just after an event still gets its push, and a late one none`()
            async throws
        {
            try fleet.register(.controls([witness], show: [subject]))
            try await fleet.change(subject, heardBy: witness)
            // The event has been read. `index.registrationGrace` is 2 s.
            try fleet.register(.controls([token], show: [subject]))
            try await fleet.eventually("the push of the event before") {
                fleet.accepted(token) == 1
            }
            try await Task.sleep(for: .milliseconds(2100))
            let late = TestToken()
            try fleet.register(.controls([late], show: [subject]))
            try await fleet.registrationsApplied()
            #expect(fleet.requests(for: late).isEmpty)
            #expect(fleet.requests(for: token).count == 1)
            #expect(fleet.requests(for: witness).count == 1)
        }
    }
}
