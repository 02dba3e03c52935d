// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import PushModel
internal import Testing

/// Answers of APNs that affect one push.
extension Behaviour {
    static let pushes = [
        Behaviour(
            "A token of another topic, and one of the other environment",
            both: Promise(
                [
                    (.accepted, 1...1), (.refused(400, .deviceTokenNotForTopic), 1...1),
                    (.refused(400, .badDeviceToken), 1...1),
                ], connections: 1...1)
        ) { kind in
            let server = try DeliverySimulator()
            let bundleID = DeliveryBench.bundleID
            server.simulator.perform(
                .assignToken(
                    DeliveryBench.tokenPrefix + "0000", topic: bundleID + ".push-type.widgets",
                    .production))
            server.simulator.perform(
                .assignToken(
                    DeliveryBench.tokenPrefix + "0001", topic: bundleID + ".push-type.controls",
                    .development))
            let trial = try Trial(kind, with: server)
            trial.deliver(3)
            return trial
        },
        Behaviour(
            "410 with a timestamp before the push, after it, and with none",
            both: Promise(
                [(.refused(410, .unregistered), 2...2), (.refused(410, .expiredToken), 1...1)],
                connections: 1...1, also: ["each timestamp to the millisecond"])
        ) { kind in
            let stamps: [ScriptedTimestamp] = [.at(1_463_712_000_123), .at(4_102_444_800_456)]
            let server = try DeliverySimulator {
                $0.rules =
                    stamps.enumerated().map { number, stamp in
                        ScriptedRule(
                            tokenPrefix: DeliveryBench.tokenPrefix + "000\(number)",
                            answer: .gone("Unregistered", stamp))
                    } + [ScriptedRule(answer: .gone("ExpiredToken", .absent))]
            }
            let trial = try Trial(kind, with: server)
            trial.deliver(3)
            #expect(
                Set(trial.outcomes.map(\.apnsTimestamp)) == [
                    1_463_712_000_123, 4_102_444_800_456, -1,
                ])
            return trial
        },
        Behaviour(
            "Bodies of 4,096 and 4,097 bytes",
            both: Promise(
                [(.accepted, 1...1), (.refused(413, .payloadTooLarge), 1...1)],
                connections: 1...1)
        ) { kind in
            let trial = try Trial(kind, with: try DeliverySimulator())
            trial.deliver(1, bodyBytes: 4096)
            trial.deliver(1, bodyBytes: 4097)
            return trial
        },
        Behaviour(
            "A bad priority: 400, which costs that push alone",
            both: Promise(
                [(.accepted, 9...9), (.refused(400, .badPriority), 1...1)], connections: 1...1)
        ) { kind in
            let trial = try Trial(kind, with: try DeliverySimulator())
            trial.send(10) { if $0 == 4 { $1.pointee.priority = 3 } }
            return trial
        },
        Behaviour(
            "Two pushes to one token at once: 429 for the second",
            both: Promise(
                [(.accepted, 9...9), (.refused(429, .tooManyRequests), 1...1)],
                connections: 1...1)
        ) { kind in
            let server = try DeliverySimulator { $0.deviceTokenGapMin = .seconds(3600) }
            let trial = try Trial(kind, with: server)
            let slab = trial.bench.slab
            trial.send(10) { number, push in
                // As the eighth.
                if number == 8 { slab.inlineToken(PushSlot(push - slab.push(0)))[31] = 7 }
            }
            return trial
        },
        Behaviour(
            "Tokens of 32, 54, 80 and 100 bytes",
            both: Promise(4, .accepted, connections: 1...1)
        ) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server)
            let lengths = [32, 54, 80, 100]
            let slab = trial.bench.slab
            trial.send(4) { number, push in
                slab.inlineToken(PushSlot(push - slab.push(0))).update(repeating: 0xC4, count: 100)
                push.pointee.tokenBytes = UInt16(lengths[number])
            }
            trial.collectNow()
            let paths = server.simulator.recordedRequests.compactMap { $0[":path"] }
            #expect(
                Set(paths) == Set(lengths.map { "/3/device/" + String(repeating: "c4", count: $0) })
            )
            return trial
        },
    ]
}
