// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Foundation
import PushModel
import RecordFormats
import Testing

extension `One worker` {
    @Suite(.serialized) struct `serves several apps, both environments and two teams` {
        private struct Tenant {
            let app: String
            let environment: PushEnvironment
            let team: SigningTeam
            let token = TestToken()
        }

        private let fleet: Fleet
        /// All show it: subjects are scoped by app.
        private let subject = "shared-\(UUID().uuidString.prefix(8))"
        private let tenants: [Tenant]

        init() throws {
            fleet = try #require(Fleet.current)
            tenants = [SigningTeam.home, .other].flatMap { team in
                team.apps.flatMap { app in
                    PushEnvironment.allCases.map {
                        Tenant(app: app, environment: $0, team: team)
                    }
                }
            }
            for tenant in tenants {
                try fleet.register(
                    .controls(
                        [tenant.token], show: [subject], app: tenant.app,
                        environment: tenant.environment))
            }
        }

        private func emit(app: String, environment: PushEnvironment? = nil) throws {
            var event = EventDraft()
            event.subject = subject
            event.app = app
            event.environment = environment
            try fleet.emit(event)
        }

        private func hears(_ count: Int, _ isMeant: (Tenant) -> Bool) async throws {
            for tenant in tenants where isMeant(tenant) {
                try await fleet.eventually("a push to \(tenant.app), \(tenant.environment)") {
                    fleet.accepted(tenant.token) == count
                }
            }
        }

        @Test func `each push is sent by its own pool, with its own topic, team and key`()
            async throws
        {
            try await fleet.registrationsApplied()
            for app in Set(tenants.map(\.app)) {
                try emit(app: app)
                try await hears(1) { $0.app == app }
            }
            var connections: [String: Set<Int>] = [:]
            for tenant in tenants {
                let requests = fleet.requests(for: tenant.token)
                // Once, although three apps' events named the subject.
                #expect(requests.count == 1)
                let request = try #require(requests.first)
                #expect(request.environment == tenant.environment.name)
                #expect(request["apns-topic"] == "\(tenant.app).push-type.controls")
                let bearer = ProviderTokenText(request["authorization"])
                #expect(bearer?.header["kid"] == tenant.team.keyID)
                #expect(bearer?.issuer == tenant.team.teamID)
                #expect(bearer?.isSigned(by: tenant.team) == true)
                connections["\(tenant.environment) \(tenant.team.teamID)", default: []]
                    .insert(request.connection)
            }
            // One connection a pool, which apps of one team share and nobody else.
            #expect(connections.count == 4)
            #expect(connections.values.allSatisfy { $0.count == 1 })
            #expect(Set(connections.values.flatMap { $0 }).count == 4)
        }

        @Test func `an event for one environment stays there`() async throws {
            try await fleet.registrationsApplied()
            try emit(app: TestApp.garden, environment: .development)
            let isMeant = { (tenant: Tenant) in
                tenant.app == TestApp.garden && tenant.environment == .development
            }
            try await hears(1, isMeant)
            // One more, so that whatever the first one asked for has been sent.
            try emit(app: TestApp.garden, environment: .development)
            try await hears(2, isMeant)
            for tenant in tenants where !isMeant(tenant) {
                #expect(fleet.requests(for: tenant.token).isEmpty)
            }
        }
    }
}
