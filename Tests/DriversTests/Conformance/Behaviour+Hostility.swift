// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import Testing

/// Hostile servers, which may cost a connection at most, never memory or time.
extension Behaviour {
    static let hostility = [
        Behaviour(
            "CONTINUATION frames without end",
            nghttp2: Promise(
                [(.accepted, 6...6), (.unknown, 3...3)], connections: 2...2, isIdle: true,
                also: ["under 16 MiB of memory"]),
            // libcurl 8.14 takes the status 200 before the block of headers is complete.
            libcurl: Promise(
                [(.accepted, 6...7), (.unknown, 2...3)], connections: 2...2, isIdle: true,
                also: ["under 16 MiB of memory"], cannot: .cutAnswers)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let streams = try trial.put(3, on: connection)
            let before = residentBytes()
            let field = HTTP2Frame.block([("x", String(repeating: "x", count: 16_000))])
            connection.say(
                HTTP2Frame(
                    .headers, stream: streams[0], HTTP2Frame.block([(":status", "200")])))
            let frames = Array(
                repeating: HTTP2Frame(.continuation, stream: streams[0], field), count: 16)
            // This would take 256 MiB if the transport had no bound of its own.
            for _ in 0..<1000 where !connection.isGone {
                connection.order(.send(frames.flatMap(\.bytes)))
                try trial.wait("the server has written") {
                    connection.isGone || !connection.hasOrders
                }
            }
            try trial.wait("the connection ends") { connection.isGone }
            trial.collectNow()
            #expect(residentBytes() - before < 16 << 20)
            trial.rest()
            trial.deliver(5)
            return trial
        },
        Behaviour(
            "Frames that are not HTTP/2",
            nghttp2: Promise(
                [(.accepted, 6...6), (.unknown, 3...3)], connections: 2...2, isIdle: true),
            libcurl: Promise(
                [(.accepted, 6...6), (.unknown, 3...3)], connections: 2...2, isIdle: true,
                cannot: .brokenProtocol)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                _ in
            } limits: {
                $0.requestTimeout = .seconds(1)
            }
            _ = try trial.put(3, on: connection)
            connection.order(.send(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)))
            trial.collectNow()
            trial.rest()
            trial.deliver(5)
            return trial
        },
        Behaviour(
            "400 SETTINGS and 400 PING at once",
            both: Promise(9, .accepted, connections: 1...1, isIdle: true)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let streams = try trial.put(3, on: connection)
            for _ in 0..<400 {
                connection.settings([.streamsMax: 100])
                connection.say(HTTP2Frame(.ping, [UInt8](repeating: 0, count: 8)))
            }
            for stream in streams { connection.answer(200, on: stream) }
            trial.collectNow()
            trial.rest()
            for stream in try trial.put(5, on: connection) { connection.answer(200, on: stream) }
            return trial
        },
    ]

    /// The resident memory of this process.
    private static func residentBytes() -> Int {
        let words = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = words?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4096
    }
}
