// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import Testing

/// What the simulator enforces against a client that trespasses.
@Suite struct `The APNs simulator's bounds` {
    private static let refusedStream: UInt32 = 7
    private let home = SigningTeam.home

    @Test func `let one stream in until a provider token is valid`() throws {
        let fixture = try SimulatorFixture { $0.streamLimit = 20 }
        let client = try SimulatorFrameClient(fixture)
        client.push(on: [1, 3, 5], bearer: nil)
        let refused = SimulatorFrameClient.Outcome.reset(Self.refusedStream)
        #expect(
            client.outcomes(of: [1, 3, 5])
                == [1: .refused("MissingProviderToken"), 3: refused, 5: refused])
        // An invalid one opens nothing up.
        client.push(on: [7, 9], bearer: "bearer a.b.c")
        #expect(
            client.outcomes(of: [7, 9]) == [7: .refused("InvalidProviderToken"), 9: refused])
        #expect(client.streamLimits == [1])
        client.push(on: [11], bearer: home.bearer())
        #expect(client.outcomes(of: [11]) == [11: .accepted])
        #expect(client.listen { client.streamLimits == [1, 20] })
        client.push(on: [13, 15, 17], bearer: nil)
        let missing = SimulatorFrameClient.Outcome.refused("MissingProviderToken")
        #expect(client.outcomes(of: [13, 15, 17]) == [13: missing, 15: missing, 17: missing])
        #expect(fixture.simulator.counts.streamsRefused == 3)
    }

    @Test func `simulator connections refuse streams above a lowered limit, and keep open ones`()
        throws
    {
        let fixture = try SimulatorFixture()
        let bearer = home.bearer()
        let client = try SimulatorFrameClient(fixture)
        client.push(on: [1], bearer: bearer)
        #expect(client.outcomes(of: [1]) == [1: .accepted])
        fixture.simulator.perform(.delay(.milliseconds(400)))
        client.push(on: [3, 5, 7], bearer: bearer)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 4 })
        fixture.simulator.perform(.streamLimit(2))
        #expect(client.listen { client.streamLimits.last == 2 })
        client.push(on: [9], bearer: bearer)
        #expect(client.outcomes(of: [9]) == [9: .reset(Self.refusedStream)])
        fixture.simulator.perform(.streamLimit(4))
        #expect(client.listen { client.streamLimits.last == 4 })
        client.push(on: [11], bearer: bearer)
        #expect(
            client.outcomes(of: [3, 5, 7, 11])
                == [3: .accepted, 5: .accepted, 7: .accepted, 11: .accepted])
        #expect(client.streamLimits == [1, 1000, 2, 4])
    }

    @Test func `answer below the last stream of a GOAWAY, nothing above, and close`() throws {
        let fixture = try SimulatorFixture()
        let bearer = home.bearer()
        let client = try SimulatorFrameClient(fixture)
        client.push(on: [1], bearer: bearer)
        #expect(client.outcomes(of: [1]) == [1: .accepted])
        fixture.simulator.perform(.delay(.milliseconds(100)))
        client.push(on: [3, 5, 7], bearer: bearer)
        #expect(SimulatorFixture.eventually { fixture.simulator.counts.accepted == 4 })
        fixture.simulator.perform(.goAway(reason: nil, streamsBelow: 2))
        _ = client.listen { false }
        #expect(client.isClosed)
        #expect(client.lastStreams == [3])
        #expect(client.outcomes[3] == .accepted)
        #expect(client.outcomes[5] == nil && client.outcomes[7] == nil)
    }

    @Test func `answer PING in a stall and not in a black hole`() throws {
        let fixture = try SimulatorFixture()
        let client = try SimulatorFrameClient(fixture)
        fixture.simulator.perform(.stall(true))
        client.push(on: [1], bearer: home.bearer())
        client.ping()
        #expect(client.listen { client.pingAnswers == 1 })
        fixture.simulator.perform(.blackHole(true))
        client.ping()
        #expect(!client.listen(for: 0.2) { client.pingAnswers > 1 })
        fixture.simulator.perform(.blackHole(false))
        #expect(client.listen { client.pingAnswers == 2 })
        #expect(client.outcomes.isEmpty)
    }

    @Test func `a connection whose provider token grows too old in use is wedged`() throws {
        let fixture = try SimulatorFixture()
        let aging = home.bearer(age: 600)
        let client = try SimulatorFrameClient(fixture)
        client.push(on: [1], bearer: aging)
        #expect(client.outcomes(of: [1]) == [1: .accepted])
        fixture.simulator.perform(.providerTokenAgeMax(.seconds(300)))
        let expired = SimulatorFrameClient.Outcome.refused("ExpiredProviderToken")
        client.push(on: [3], bearer: aging)
        #expect(client.outcomes(of: [3]) == [3: expired])
        client.push(on: [5], bearer: home.bearer())
        #expect(client.outcomes(of: [5]) == [5: expired])
        let other = try SimulatorFrameClient(fixture)
        other.push(on: [1], bearer: home.bearer())
        #expect(other.outcomes(of: [1]) == [1: .accepted])
    }

    @Test func `simulator connections lift the wedge of an early provider token when it is time`()
        throws
    {
        let fixture = try SimulatorFixture { $0.providerTokenUpdateMin = .seconds(2) }
        let (first, second) = (home.bearer(age: 20), home.bearer())
        let client = try SimulatorFrameClient(fixture)
        client.push(on: [1], bearer: first)
        #expect(client.outcomes(of: [1]) == [1: .accepted])
        let tooMany = SimulatorFrameClient.Outcome.refused("TooManyProviderTokenUpdates")
        client.push(on: [3], bearer: second)
        #expect(client.outcomes(of: [3]) == [3: tooMany])
        // The token that was good is wedged with it.
        client.push(on: [5], bearer: first)
        #expect(client.outcomes(of: [5]) == [5: tooMany])
        var stream: UInt32 = 7
        #expect(
            SimulatorFixture.eventually {
                stream += 2
                client.push(on: [stream], bearer: second)
                Thread.sleep(forTimeInterval: 0.1)
                return client.outcomes(of: [stream]) == [stream: .accepted]
            })
    }
}
