// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import Testing

/// Connections that break, fall silent, or are never established.
extension Behaviour {
    static let connections = [
        Behaviour(
            "A TCP reset with 10 in flight",
            both: Promise([(.accepted, 11...11), (.unknown, 10...10)], connections: 2...2)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            _ = try trial.put(10, on: connection)
            connection.order(.cut)
            trial.collectNow()
            trial.deliver(10)
            return trial
        },
        Behaviour(
            "The server closes its side with 10 in flight",
            both: Promise(
                [(.accepted, 11...11), (.unknown, 10...10)], connections: 2...2, isIdle: true)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            _ = try trial.put(10, on: connection)
            connection.order(.halfClose)
            trial.collectNow()
            trial.rest()
            trial.deliver(10)
            return trial
        },
        Behaviour(
            "The server closes its side between pushes",
            both: Promise(11, .accepted, connections: 2...2, isIdle: true)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            connection.order(.halfClose)
            trial.rest()
            trial.deliver(10)
            return trial
        },
        Behaviour(
            "A stream is reset with 100 in flight",
            both: Promise([(.accepted, 100...100), (.unknown, 1...1)], connections: 1...1)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let streams = try trial.put(100, on: connection)
            connection.reset(streams[7], code: 2)
            for stream in streams where stream != streams[7] {
                connection.answer(200, on: stream)
            }
            return trial
        },
        Behaviour(
            "A black hole: bytes are acknowledged and nothing answers",
            both: Promise(
                [(.accepted, 6...6), (.unknown, 5...5)], connections: 2...2, isIdle: true)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                _ in
            } limits: {
                $0.requestTimeout = .seconds(1)
            }
            connection.order(.deafen)
            trial.send(5)
            trial.rest()
            trial.collectNow()
            trial.deliver(5)
            return trial
        },
        Behaviour(
            "One of 50 is never answered",
            both: Promise(
                [(.accepted, 60...60), (.unknown, 1...1)], connections: 1...1, isIdle: true,
                also: ["its stream is reset at the deadline"])
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                $0.serve = { if $1.push != 20 { $0.answer(200, on: $1.stream) } }
            } limits: {
                $0.requestTimeout = .seconds(1)
            }
            trial.send(50)
            trial.rest()
            trial.collectNow()
            trial.deliver(10)
            #expect(connection.requests.count == 61)
            let silent = try #require(connection.requests.first { $0.push == 20 })
            try trial.wait("its reset") { connection.resets.contains(silent.stream) }
            return trial
        },
        Behaviour(
            "Answers are slow",
            both: Promise(51, .accepted, connections: 1...1, isIdle: true)
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server)
            trial.deliver(1)
            server.simulator.perform(.delay(.milliseconds(400)))
            trial.send(50)
            try trial.wait("requests are in flight") { trial.counts.requests == 51 }
            trial.rest()
            return trial
        },
        Behaviour(
            "No SETTINGS within the connect timeout",
            nghttp2: Promise(
                5, .accepted, connections: 2...2, isIdle: true,
                also: ["nothing sent before SETTINGS"]),
            libcurl: Promise(
                5, .accepted, connections: 1...1, isIdle: true,
                cannot: .settings)
        ) { kind in
            let server = try FrameServer {
                $0.settings = nil
                // No other frame may come first.
                $0.givesBackWindow = false
            }
            let trial = try Trial(kind, with: server) { $0.connectTimeout = .milliseconds(500) }
            trial.send(5)
            trial.rest()
            let connections = kind == .nghttp2 ? 2 : 1
            try trial.wait("connection \(connections)") { server.connections.count == connections }
            #expect(server.connections[0].requests.count == (kind == .nghttp2 ? 0 : 1))
            let connection = server.connections[connections - 1]
            connection.settings([.streamsMax: 100])
            for number in 0..<5 {
                try trial.wait("request \(number)") { connection.requests.count > number }
                connection.answer(200, on: connection.requests[number].stream)
            }
            return trial
        },
        Behaviour(
            "A PING of the server's",
            both: Promise(2, .accepted, connections: 1...1, also: ["answered"])
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let stream = try trial.put(1, on: connection)[0]
            connection.say(HTTP2Frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8]))
            try trial.wait("the answer to PING") { connection.pingAnswers == 1 }
            connection.answer(200, on: stream)
            return trial
        },
        Behaviour(
            "Silence before a push, and the connection lives",
            nghttp2: Promise(6, .accepted, connections: 1...1, also: ["asked by PING"]),
            libcurl: Promise(
                6, .accepted, connections: 1...1,
                cannot: .ping)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                $0.serve = { $0.answer(200, on: $1.stream) }
            } limits: {
                $0.pingAfterSilence = .milliseconds(100)
            }
            usleep(150_000)
            trial.deliver(5)
            #expect(connection.pings.isEmpty == (kind == .libcurl))
            return trial
        },
        Behaviour(
            "An idle connection",
            nghttp2: Promise(1, .accepted, connections: 1...1, also: ["asked by PING"]),
            libcurl: Promise(1, .accepted, connections: 1...1, cannot: .ping)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                _ in
            } limits: {
                $0.pingWhenIdle = .milliseconds(100)
            }
            if kind == .nghttp2 { try trial.wait("a PING") { !connection.pings.isEmpty } }
            return trial
        },
        Behaviour(
            "Silence before 5 pushes, and nothing answers",
            nghttp2: Promise(6, .accepted, connections: 2...2, isIdle: true),
            libcurl: Promise(
                [(.accepted, 5...5), (.unknown, 1...1)], connections: 2...2, isIdle: true,
                cannot: .ping)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                _ in
            } limits: {
                $0.pingAfterSilence = .milliseconds(100)
                $0.pingTimeout = .milliseconds(400)
                $0.requestTimeout = .seconds(1)
            }
            connection.order(.deafen)
            usleep(150_000)
            trial.send(5)
            trial.rest()
            return trial
        },
    ]
}
