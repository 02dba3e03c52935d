// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Testing

/// Servers that send GOAWAY.
extension Behaviour {
    static let goAways = [
        said("GOAWAY with Apple's reason", #"{"reason":"Shutdown"}"#, logged: "Shutdown"),
        said("GOAWAY without a reason", "", logged: "no reason"),
        said("GOAWAY whose data is not JSON", "so long", logged: "no reason"),
        Behaviour(
            "GOAWAY leaves out the last 40 of 100 in flight",
            nghttp2: Promise(101, .accepted, connections: 2...2),
            libcurl: Promise(
                [(.accepted, 41...61), (.unknown, 40...60)], connections: 1...1,
                cannot: .goAway)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let streams = try trial.put(100, on: connection)
            connection.goAway(last: streams[59])
            for stream in streams.prefix(60) { connection.answer(200, on: stream) }
            return trial
        },
        Behaviour(
            "GOAWAY after every 1,000 requests",
            nghttp2: Promise(100_000, .accepted, connections: 100...102),
            libcurl: Promise(
                [(.accepted, 9000...10_000), (.unknown, 0...1000)], connections: 10...12,
                cannot: .goAway)
        ) { kind in
            let server = try FrameServer {
                $0.settings = [.streamsMax: 1000]
                $0.serve = leavingAfterThousand
            }
            let trial = try Trial(
                kind, with: server, budget: ConnectBudget(perSecond: 1000, burst: 1000))
            trial.deliver(kind == .nghttp2 ? 100_000 : 10_000)
            return trial
        },
    ]

    @Sendable private static func leavingAfterThousand(
        _ connection: FrameConnection, _ request: FrameConnection.Request
    ) {
        // A client's streams have odd numbers, from 1.
        let number = (request.stream + 1) / 2
        guard number <= 1000 else { return }
        connection.answer(200, on: request.stream)
        guard number == 1000 else { return }
        connection.goAway(last: request.stream, #"{"reason":"Shutdown"}"#)
    }

    /// What is in flight is still answered; the next push goes elsewhere.
    private static func said(_ name: String, _ data: String, logged reason: String) -> Behaviour {
        Behaviour(
            name,
            nghttp2: Promise(
                31, .accepted, connections: 2...2, also: ["the log says \"\(reason)\""]),
            libcurl: Promise(
                31, .accepted, connections: 2...2, cannot: .goAway)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let streams = try trial.put(20, on: connection)
            connection.goAway(last: streams[19], data)
            for stream in streams { connection.answer(200, on: stream) }
            trial.collectNow()
            trial.deliver(10)
            let isLogged = trial.log.all.contains {
                $0.contains("(GOAWAY)") && $0.contains("\(reason)")
            }
            #expect(isLogged == (kind == .nghttp2))
            return trial
        }
    }
}
