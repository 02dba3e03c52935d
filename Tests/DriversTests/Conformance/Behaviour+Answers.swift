// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Testing

/// The forms that answers take.
extension Behaviour {
    static let answers = [
        Behaviour(
            "200 as APNs sends it: HEADERS with END_STREAM, no DATA",
            both: Promise(51, .accepted, connections: 1...1)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            for stream in try trial.put(50, on: connection) {
                connection.answer(200, on: stream)
            }
            return trial
        },
        Behaviour(
            "An answer in two header frames, its body byte by byte",
            both: Promise(
                [(.accepted, 1...1), (.refused(410, .unregistered), 1...1)],
                connections: 1...1, also: ["with its timestamp"])
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let stream = try trial.put(1, on: connection)[0]
            connection.sayInPieces(
                410, on: stream, body: #"{"reason":"Unregistered","timestamp":1763712000123}"#)
            trial.collectNow()
            #expect(trial.outcomes.last?.apnsTimestamp == 1_763_712_000_123)
            return trial
        },
        Behaviour(
            "103 before the answer", both: Promise(2, .accepted, connections: 1...1)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let stream = try trial.put(1, on: connection)[0]
            connection.say(
                HTTP2Frame(
                    .headers, flags: HTTP2Frame.endOfHeaders, stream: stream,
                    HTTP2Frame.block([(":status", "103")])))
            connection.answer(200, on: stream)
            return trial
        },
        Behaviour(
            "200 whose stream is reset before its end",
            nghttp2: Promise(2, .accepted, connections: 1...1),
            libcurl: Promise(
                [(.accepted, 1...2), (.unknown, 0...1)], connections: 1...1,
                cannot: .cutAnswers)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind)
            let stream = try trial.put(1, on: connection)[0]
            connection.accepted(200, on: stream)
            connection.say(
                HTTP2Frame(
                    .headers, flags: HTTP2Frame.endOfHeaders, stream: stream,
                    HTTP2Frame.block([(":status", "200")])))
            connection.reset(stream, code: 8)
            return trial
        },
        scripted(
            "A reason that Apple has not published", .reason(400, "TooManyCooks"),
            .refused(400, .unknown), also: "its word is kept"
        ) {
            $0.bench.slab.reasonText($1.slot) == "TooManyCooks"
        },
        scripted("An error without a body", .emptyBody(500), .refused(500)),
        scripted("An error with a page in HTML", .html(502), .refused(502)),
        Behaviour(
            "An answer with 100 KB of headers",
            nghttp2: Promise(4, .accepted, connections: 1...1),
            libcurl: Promise(
                [(.accepted, 3...4), (.unknown, 0...1)], connections: 1...1,
                cannot: .largeHeaders)
        ) { kind in
            let (trial, connection) = try Trial.warm(kind) {
                _ in
            } limits: {
                $0.requestTimeout = .seconds(1)
            }
            let streams = try trial.put(3, on: connection)
            connection.answer(200, on: streams[0])
            connection.sayLargeAnswer(on: streams[1])
            connection.answer(200, on: streams[2])
            return trial
        },
        Behaviour(
            "One of four connections answers 500 to everything",
            both: Promise(
                [(.accepted, 1400...1580), (.refused(500, .internalServerError), 20...200)],
                connections: 5...5, also: ["it alone is replaced and blamed"])
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server, connections: 4...4)
            trial.deliver(1000)
            server.simulator.perform(
                .rules([
                    ScriptedRule(
                        connections: 2...2, answer: .reason(500, "InternalServerError"))
                ]))
            trial.deliver(400)
            try trial.wait("the connection to be retired") {
                trial.connectionCounts.retiredForFailures == 1
            }
            trial.deliver(200)
            // Its first two faults may be their tokens' own.
            let blamed = trial.outcomes.count { $0.isOutlier }
            #expect(blamed + 2 >= trial.outcomes.count { $0.status == 500 })
            #expect(trial.outcomes.allSatisfy { $0.status == 500 || !$0.isOutlier })
            return trial
        },
    ]

    /// An error answer to one of two pushes, which must affect only that push.
    static func scripted(
        _ name: String, _ answer: ScriptedAnswer, _ end: PushEnd, also: String? = nil,
        holds: @escaping @Sendable (Trial, PushOutcome) -> Bool = { _, _ in true }
    ) -> Behaviour {
        Behaviour(
            name,
            both: Promise(
                [(.accepted, 2...2), (end, 1...1)], connections: 1...1,
                also: also.map { [$0] } ?? [])
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server)
            trial.deliver(1)
            server.simulator.perform(.rules([ScriptedRule(answer: answer)]))
            trial.deliver(1)
            let outcome = try #require(trial.outcomes.last)
            #expect(holds(trial, outcome))
            server.simulator.perform(.rules([]))
            trial.deliver(1)
            return trial
        }
    }
}

extension FrameConnection {
    /// Sends an answer in pieces: its header block in two frames, since more than a few would be an
    /// attack, and its body in a frame per byte.
    fileprivate func sayInPieces(_ status: Int, on stream: UInt32, body: String) {
        let block = HTTP2Frame.block([(":status", String(status))])
        say(
            HTTP2Frame(.headers, stream: stream, [block[0]]),
            HTTP2Frame(
                .continuation, flags: HTTP2Frame.endOfHeaders, stream: stream,
                Array(block.dropFirst())))
        for byte in body.utf8 { say(HTTP2Frame(.data, stream: stream, [byte])) }
        say(HTTP2Frame(.data, flags: HTTP2Frame.endOfStream, stream: stream))
    }

    /// Sends a 200 with a hundred header fields of a thousand bytes, in frames of 16,000 bytes.
    fileprivate func sayLargeAnswer(on stream: UInt32) {
        accepted(200, on: stream)
        let fields = (0..<100).map {
            (name: "x-\($0)", value: String(repeating: "x", count: 1000))
        }
        let block = HTTP2Frame.block([(":status", "200")] + fields)
        for start in stride(from: 0, to: block.count, by: 16_000) {
            let part = Array(block[start..<min(start + 16_000, block.count)])
            let end = start + 16_000 >= block.count ? HTTP2Frame.endOfHeaders : 0
            say(
                start == 0
                    ? HTTP2Frame(
                        .headers, flags: HTTP2Frame.endOfStream | end, stream: stream, part)
                    : HTTP2Frame(.continuation, flags: end, stream: stream, part))
        }
    }
}
