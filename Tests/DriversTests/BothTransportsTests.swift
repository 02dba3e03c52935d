// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import FleetKit
internal import LinuxIO
internal import PushModel
internal import Testing

@Suite struct `Both transports` {
    @Test(arguments: TransportKind.allCases)
    func `a transport sends 500 pushes over one cold connection and none is refused`(
        _ kind: TransportKind
    )
        throws
    {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        bench.submit(500)
        let outcomes = bench.collect(500)
        #expect(outcomes.count == 500)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(outcomes.allSatisfy { $0.sentAt.nanoseconds > 0 })
        #expect(Set(outcomes.map(\.slot)).count == 500)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
        #expect(server.simulator.counts.streamsRefused == 0)
        #expect(bench.drain())
        #expect(bench.transport.counters.snapshot.requests == 500)
        #expect(bench.connectionCounts.connects == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport tells of its connections, its streams and how long it connected`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        let counters = bench.transport.counters
        let pool = PoolID(rawValue: 0)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { counters.streams(of: pool).connections == 1 })
        let streams = counters.streams(of: pool)
        #expect(streams.inFlight == 0 && streams.limit >= 100)
        #expect(counters.connectTimes.count == 1)
        let longest = try #require(counters.connectTimes.quantile(1))
        #expect(longest < .seconds(60))
        #expect(bench.drain())
        #expect(bench.wait { counters.streams(of: pool) == PoolStreams() })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport without pushes goes on beating`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        let heartbeat = bench.port.heartbeat
        for _ in 0..<2 {
            let start = Now.current.monotonic
            // It has beaten since then.
            #expect(bench.wait { heartbeat.age(now: start) == .zero })
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport sends exactly these headers and this body`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let request = try #require(server.simulator.recordedRequests.first)
        let bearer = try #require(request["authorization"])
        #expect(bearer.hasPrefix("bearer "))
        #expect(
            Set(request.headers.map { "\($0.name): \($0.value)" }) == [
                ":method: POST", ":scheme: https", ":authority: localhost",
                ":path: /3/device/\(DeliveryBench.tokenPrefix)0000", "authorization: \(bearer)",
                "apns-push-type: controls",
                "apns-topic: com.example.Home.push-type.controls",
                "apns-id: 01234567-89ab-8def-8000-000000000000", "apns-priority: 10",
                "apns-expiration: 0",
            ])
        #expect(request.headers.count == 10)
        #expect(request.headers.prefix(4).allSatisfy { $0.name.hasPrefix(":") })
        #expect(request.body == Array(DeliveryBench.body.utf8))
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport sends a broadcast with the headers of a channel`(_ kind: TransportKind) throws
    {
        let channel = Array("tst-srch-chnl".utf8)
        let server = try DeliverySimulator {
            $0.channels = [
                SimulatorChannel(
                    bundleID: DeliveryBench.bundleID, environment: .production,
                    channelID: "dHN0LXNyY2gtY2hubA==")
            ]
        }
        let bench = try server.bench(kind, tokenClass: .channel)
        // Nothing is opened before the first broadcast.
        for _ in 0..<2 {
            let start = Now.current.monotonic
            #expect(bench.wait { bench.port.heartbeat.age(now: start) == .zero })
        }
        #expect(server.simulator.counts.connectionsOpened == 0)
        let text = #"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#
        let body = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        defer { body.deallocate() }
        _ = body.initialize(from: text.utf8)
        let token = UnsafeMutablePointer<UInt8>.allocate(capacity: channel.count)
        defer { token.deallocate() }
        token.initialize(from: channel, count: channel.count)
        for _ in 0..<2 {
            bench.submit(1) { _, push in
                push.pointee.type = .liveActivity
                push.pointee.tokenBytes = UInt16(channel.count)
                push.pointee.longToken = UnsafePointer(token)
                push.pointee.body = UnsafePointer(body.baseAddress!)
                push.pointee.bodyBytes = UInt32(body.count)
                // Broadcasts have no such header.
                push.pointee.collapseID = UnsafePointer(body.baseAddress!)
                push.pointee.collapseIDBytes = 5
            }
            #expect(bench.collect(1).first?.status == 200)
        }
        #expect(server.simulator.recordedRequests.count == 2)
        for request in server.simulator.recordedRequests {
            let bearer = try #require(request["authorization"])
            #expect(
                Set(request.headers.map { "\($0.name): \($0.value)" }) == [
                    ":method: POST", ":scheme: https", ":authority: localhost",
                    ":path: /4/broadcasts/apps/com.example.Home", "authorization: \(bearer)",
                    "apns-channel-id: dHN0LXNyY2gtY2hubA==", "apns-push-type: liveactivity",
                    "apns-request-id: 01234567-89ab-8def-8000-000000000000", "apns-priority: 10",
                    "apns-expiration: 0",
                ])
            #expect(request.headers.count == 10)
            #expect(request.headers.prefix(4).allSatisfy { $0.name.hasPrefix(":") })
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport leaves out what is not set and writes numbers and names as they are`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        let collapse = UnsafeMutablePointer<UInt8>.allocate(capacity: 5)
        defer { collapse.deallocate() }
        collapse.update(from: Array("score".utf8), count: 5)
        for number in 0..<3 {
            bench.submit(1) { _, push in
                push.pointee.priority = 0
                push.pointee.expiration = number == 0 ? -1 : 1_763_712_000
                if number == 1 {
                    push.pointee.collapseID = UnsafePointer(collapse)
                    push.pointee.collapseIDBytes = 5
                }
                if number == 2 { push.pointee.apnsID = .none }
            }
            #expect(bench.collect(1).first?.status == 200)
        }
        let requests = server.simulator.recordedRequests
        #expect(requests.map { $0["apns-priority"] } == [nil, nil, nil])
        #expect(requests.map { $0["apns-expiration"] } == [nil, "1763712000", "1763712000"])
        // Nothing of a request is left in the handle for the next one.
        #expect(requests.map { $0["apns-collapse-id"] } == [nil, "score", nil])
        #expect(requests.map { $0["apns-id"] != nil } == [true, true, false])
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport takes tokens of any length and more bytes than the window holds`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        let long = UnsafeMutablePointer<UInt8>.allocate(capacity: 200)
        defer { long.deallocate() }
        long.update(repeating: 0xC4, count: 200)
        let body = Array((#"{"aps":{},"x":"\#(String(repeating: "y", count: 4000))"}"#).utf8)
        let large = UnsafeMutablePointer<UInt8>.allocate(capacity: body.count)
        defer { large.deallocate() }
        large.update(from: body, count: body.count)
        bench.submit(200) { number, push in
            push.pointee.body = UnsafePointer(large)
            push.pointee.bodyBytes = UInt32(body.count)
            push.pointee.tokenBytes = number == 50 ? 200 : 100
            if number == 50 { push.pointee.longToken = UnsafePointer(long) }
        }
        let outcomes = bench.collect(200)
        #expect(outcomes.count == 200)
        #expect(outcomes.filter { $0.status != 200 }.map(\.reason) == [])
        let requests = server.simulator.recordedRequests
        #expect(requests.count == 200)
        #expect(requests.allSatisfy { $0.body == body })
        let paths = requests.map { $0[":path"]!.utf8.count }
        #expect(paths.filter { $0 == 10 + 200 }.count == 199)
        #expect(paths.filter { $0 == 10 + 400 }.count == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport never sends an expired push`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
        bench.submit(10) { number, push in
            // Expired a moment ago, or in a while.
            push.pointee.expiresAt = now + .seconds(number.isMultiple(of: 2) ? -1 : 60)
        }
        let outcomes = bench.collect(10)
        #expect(outcomes.filter { $0.kind == .expired }.count == 5)
        #expect(bench.wait { server.simulator.counts.accepted == 5 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport spreads its pushes over the connections of a pool`(_ kind: TransportKind)
        throws
    {
        let server = try DeliverySimulator {
            $0.streamLimit = 50
            $0.delay = .milliseconds(2)
        }
        let bench = try server.bench(kind, connections: 3...3)
        bench.submit(1500)
        #expect(bench.collect(1500).allSatisfy { $0.status == 200 })
        #expect(Set(server.simulator.recordedRequests.map(\.connection)).count == 3)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 3 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a prompt push finds a stream though patient ones wait for them, and a tenth is patient`(
        _ kind: TransportKind
    ) throws {
        // Patient pushes are never answered, and hold the 30 of 32 streams that they may take.
        let server = try DeliverySimulator {
            $0.rules = [
                ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "01", answer: .silence)
            ]
        }
        let limits = DeliveryBench.brisk {
            $0.streamsMax = 32
            $0.requestTimeout = .seconds(3600)
            $0.waitMax = .seconds(3600)
        }
        let bench = try server.bench(kind, limits: limits)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100, from: 256, isPatient: true)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 31 })
        for number in 1...9 {
            bench.submit(1, from: number)
            #expect(bench.collect(1).first?.status == 200)
        }
        // After nine prompt pushes one of the patient ones is owed a stream.
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 41 })
        bench.submit(1, from: 10)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.transport.counters.snapshot.requests == 42)
        #expect(server.simulator.counts.connectionsOpened == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `pushes that end unsent are no turns of patient ones`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator {
            $0.rules = [
                ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "01", answer: .silence)
            ]
        }
        let limits = DeliveryBench.brisk {
            $0.streamsMax = 32
            $0.requestTimeout = .seconds(3600)
            $0.waitMax = .seconds(3600)
        }
        let bench = try server.bench(kind, limits: limits)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        // They hold all streams that they may, for good.
        bench.submit(30, from: 256, isPatient: true)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 31 })
        let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
        bench.submit(5, from: 300, isPatient: true) { $1.pointee.expiresAt = now - .seconds(1) }
        bench.submit(2, from: 310, isPatient: true)
        var ends: [PushOutcome] = []
        func collect(until isEnough: () -> Bool) throws {
            while !isEnough() {
                let more = bench.collect(1)
                try #require(!more.isEmpty)
                ends += more
            }
        }
        for number in 1...9 {
            bench.submit(1, from: number)
            try collect { ends.count { $0.status == 200 } == number }
        }
        // With the ninth prompt push one patient push is owed a stream: a live one takes it.
        try collect { ends.count { $0.kind == .expired } == 5 }
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 41 })
    }

    @Test(arguments: TransportKind.allCases)
    func `patient pushes alone are sent on all streams`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator {
            $0.rules = [
                ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "01", answer: .silence)
            ]
        }
        let limits = DeliveryBench.brisk {
            $0.streamsMax = 32
            $0.requestTimeout = .seconds(3600)
            $0.waitMax = .seconds(3600)
        }
        let bench = try server.bench(kind, limits: limits)
        bench.submit(1, isPatient: true)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100, from: 256, isPatient: true)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 33 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport stays on one connection when the server allows few streams`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator { $0.streamLimit = 5 }
        let bench = try server.bench(kind)
        bench.submit(300)
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.streamsRefused == 0)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport reports what APNs answers, with its timestamp and unknown words`(
        _ kind: TransportKind
    )
        throws
    {
        let rules = [
            ScriptedRule(
                tokenPrefix: DeliveryBench.tokenPrefix + "0000",
                answer: .gone("Unregistered", .at(1_763_712_000_123))),
            ScriptedRule(
                tokenPrefix: DeliveryBench.tokenPrefix + "0001",
                answer: .reason(400, "TooManyCooks")),
            ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "0002", answer: .html(502)),
            ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "0003", answer: .emptyBody(500)),
        ]
        let server = try DeliverySimulator { $0.rules = rules }
        let bench = try server.bench(kind)
        let slots = bench.submit(5)
        let outcomes = bench.collect(5)
        let bySlot = slots.compactMap { slot in outcomes.first { $0.slot == slot } }
        #expect(bySlot.map(\.status) == [410, 400, 502, 500, 200])
        #expect(bySlot.map(\.reason) == [.unregistered, .unknown, .none, .none, .none])
        #expect(bySlot.map(\.apnsTimestamp) == [1_763_712_000_123, -1, -1, -1, -1])
        #expect(bench.slab.reasonText(slots[1]) == "TooManyCooks")
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport that drains answers what is in flight and gives back what waits`(
        _ kind: TransportKind
    )
        throws
    {
        let server = try DeliverySimulator {
            $0.streamLimit = 100
            // None is answered before the drain, on a busy machine either.
            $0.delay = .milliseconds(800)
        }
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(300)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        #expect(bench.drain())
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.filter { $0.status == 200 }.count == 100)
        #expect(outcomes.filter { $0.kind == .unprocessed }.count == 200)
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 0)
    }

    @Test(arguments: TransportKind.allCases)
    func `a retry-after in seconds comes with the outcome`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        for (asked, told) in [(7, 7), (90_000, 3600), (0, 0)] as [(UInt32, UInt16)] {
            server.simulator.perform(
                .rules([
                    ScriptedRule(
                        answer: .later(503, "ServiceUnavailable", retryAfterSeconds: asked))
                ]))
            bench.submit(1)
            let outcome = try #require(bench.collect(1).first)
            #expect(outcome.status == 503 && outcome.retryAfterSeconds == told)
        }
    }
}
