// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import OpenSSL
internal import Testing

/// The rules of provider tokens, and other answers that affect the whole connection.
extension Behaviour {
    static let providerTokens =
        [
            Behaviour(
                "An expired provider token: 403, and the connection stays wedged",
                both: Promise(
                    [(.accepted, 4...4), (.refused(403, .expiredProviderToken), 1...1)],
                    connections: 2...2)
            ) { kind in
                let server = try DeliverySimulator()
                let trial = try Trial(kind, with: server)
                trial.deliver(1)
                server.simulator.perform(.providerTokenAgeMax(.seconds(-3600)))
                trial.deliver(1)
                server.simulator.perform(.providerTokenAgeMax(.seconds(3600)))
                trial.deliver(3)
                return trial
            },
            Behaviour(
                "A second provider token within 20 minutes",
                both: Promise(
                    2, .accepted, connections: 2...2, also: ["shown on a connection of its own"])
            ) { kind in
                let server = try DeliverySimulator()
                let trial = try Trial(kind, with: server)
                trial.deliver(1)
                try trial.bench.useKey(pem: server.key.privatePEM)
                trial.deliver(1)
                let requests = server.simulator.recordedRequests
                #expect(requests[0]["authorization"] != requests[1]["authorization"])
                return trial
            },
            Behaviour(
                "A key that APNs does not know: 403",
                both: Promise(
                    [(.accepted, 2...2), (.refused(403, .invalidProviderToken), 1...1)],
                    connections: 3...3, also: ["shown on a connection of its own"])
            ) { kind in
                let server = try DeliverySimulator()
                let trial = try Trial(kind, with: server)
                trial.deliver(1)
                try trial.bench.useKey(pem: try ES256Key.generate().privatePEM)
                trial.deliver(1)
                try trial.bench.useKey(pem: server.key.privatePEM)
                trial.deliver(1)
                return trial
            },
        ] + leaving

    private static let leaving = [
        left(403, .unrelatedKeyIdInToken), kept(429, .tooManyProviderTokenUpdates),
        left(400, .idleTimeout), left(503, .shutdown), kept(500, .internalServerError),
        kept(503, .serviceUnavailable),
    ]

    private static func left(_ status: UInt16, _ reason: APNSReason) -> Behaviour {
        Behaviour(
            "\(status) \(reason.name): the connection is left",
            both: Promise(
                [(.accepted, 2...2), (.refused(status, reason), 1...1)], connections: 2...2)
        ) { try answered(status, reason, to: $0) }
    }

    private static func kept(_ status: UInt16, _ reason: APNSReason) -> Behaviour {
        Behaviour(
            "\(status) \(reason.name): the connection is kept",
            both: Promise(
                [(.accepted, 2...2), (.refused(status, reason), 1...1)], connections: 1...1)
        ) { try answered(status, reason, to: $0) }
    }

    private static func answered(
        _ status: UInt16, _ reason: APNSReason, to kind: TransportKind
    ) throws -> Trial {
        let server = try DeliverySimulator()
        let trial = try Trial(kind, with: server)
        trial.deliver(1)
        server.simulator.perform(
            .rules([ScriptedRule(answer: .reason(status, reason.name))]))
        trial.deliver(1)
        server.simulator.perform(.rules([]))
        trial.deliver(1)
        return trial
    }
}
