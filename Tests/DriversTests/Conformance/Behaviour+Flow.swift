// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Delivery
internal import FleetKit
internal import Testing

/// Full windows, during which the transport must sleep until a WINDOW_UPDATE, and long round trips.
extension Behaviour {
    static let flow = [
        Behaviour(
            "60 bodies of 4,000 bytes, and the server withholds WINDOW_UPDATE",
            both: Promise(61, .accepted, connections: 1...1, isIdle: true)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) { $0.givesBackWindow = false }
            trial.send(60, bodyBytes: 4000)
            try trial.wait("the window is as full as it will be") {
                connection.requests.count >= (kind == .nghttp2 ? 17 : 9)
            }
            trial.rest()
            connection.openWindow(by: 1 << 20)
            for number in 1...60 {
                try trial.wait("request \(number)") { connection.requests.count > number }
                connection.answer(200, on: connection.requests[number].stream)
            }
            return trial
        },
        Behaviour(
            "The server answers and never gives the window back",
            nghttp2: Promise(61, .accepted, connections: 1...1, isIdle: true),
            libcurl: Promise(
                61, .accepted, connections: 1...1,
                cannot: .fullWindow)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                $0.givesBackWindow = false
                $0.serve = { $0.answer(200, on: $1.stream) }
            }
            trial.send(60, bodyBytes: 4000)
            try trial.wait("the window is full") { connection.requests.count >= 17 }
            trial.rest()
            connection.openWindow(by: 1 << 20)
            return trial
        },
        Behaviour(
            "A stream's window is smaller than its body",
            nghttp2: Promise(4, .accepted, connections: 1...1, isIdle: true),
            libcurl: Promise(
                [(.accepted, 3...4), (.unknown, 0...1)], connections: 1...2, cannot: .fullWindow)
        ) { kind in
            let server = try FrameServer {
                $0.settings = [.streamsMax: 100, .initialWindow: 10]
                $0.serve = { $0.answer(200, on: $1.stream) }
            }
            let trial = try Trial(kind, with: server) { $0.requestTimeout = .seconds(2) }
            trial.send(4)
            // libcurl may have sent the first body before it knew of the window.
            try trial.wait("a request") { server.connections.first?.begun.isEmpty == false }
            trial.rest()
            server.connections[0].settings([.streamsMax: 100, .initialWindow: 65_535])
            return trial
        },
        Behaviour(
            "8,000 pushes over a round trip of 50 ms, 100 streams a connection, a pool of 1 to 4",
            both: Promise(
                8000, .accepted, connections: 2...4,
                also: ["in less than the 4 s that one connection would take"])
        ) { kind in
            let server = try DeliverySimulator {
                $0.streamLimit = 100
                $0.delay = .milliseconds(50)
                $0.recordRequests = 8000
            }
            let trial = try Trial(kind, with: server, connections: 1...4)
            let stopwatch = Stopwatch()
            trial.deliver(8000)
            // 80 times 100 streams, each time a round trip.
            if Trial.isTimed { #expect(stopwatch.time < .milliseconds(80 * 50)) }
            return trial
        },
    ]
}
