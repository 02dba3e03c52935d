// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import PushModel
internal import Testing

/// Stream limits, which may change at any time.
extension Behaviour {
    static let streams = [
        Behaviour(
            "One stream until the first valid provider token, then as many as announced",
            both: Promise(300, .accepted, connections: 1...1, also: ["no stream refused"])
        ) { kind in
            let server = try DeliverySimulator { $0.streamLimit = 50 }
            let trial = try Trial(kind, with: server)
            trial.deliver(300)
            #expect(server.simulator.counts.streamsRefused == 0)
            return trial
        },
        Behaviour(
            "500 pushes wait on a cold connection",
            both: Promise(500, .accepted, connections: 1...1, also: ["no stream refused"])
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server)
            trial.deliver(500)
            #expect(server.simulator.counts.streamsRefused == 0)
            return trial
        },
        Behaviour(
            "Streams beyond the limit are refused (REFUSED_STREAM)",
            nghttp2: Promise(101, .accepted, connections: 1...1),
            libcurl: Promise(
                [(.accepted, 71...101), (.unknown, 0...30)], connections: 1...31,
                cannot: .refusals)
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server)
            trial.deliver(1)
            server.simulator.perform(.refuseStreams(30))
            trial.deliver(100)
            return trial
        },
        Behaviour(
            "The limit falls from 1,000 to 1 in flight, and rises again",
            nghttp2: Promise(1501, .accepted, connections: 1...1),
            libcurl: Promise(
                [(.accepted, 1301...1501), (.unknown, 0...200)],
                cannot: .settings)
        ) { kind in
            let server = try DeliverySimulator { $0.delay = .milliseconds(50) }
            let trial = try Trial(kind, with: server)
            trial.deliver(1)
            trial.send(1500)
            try trial.wait("requests are in flight") { trial.counts.requests >= 60 }
            server.simulator.perform(.streamLimit(1))
            server.simulator.perform(.delay(.zero))
            try trial.wait("the limit is in force") {
                kind == .libcurl || trial.bench.port.capacity(of: PoolID(rawValue: 0)) == 33
            }
            server.simulator.perform(.streamLimit(1000))
            trial.collectNow()
            return trial
        },
    ]
}
