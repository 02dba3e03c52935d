// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import Testing

@testable internal import HTTPListener

@Suite struct `A peer's share of a listener` {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func shares(requestsPerSecond: Int = 10) -> PeerShares {
        var limits = HTTPListenerSettings.Limits()
        limits.requestsPerSecondMax = requestsPerSecond
        return PeerShares(limits)
    }

    @Test func `a peer's requests wait once its burst is used up, and only they`() {
        let shares = shares()
        for peer in ["flood", "probe"] {
            let isTaken = shares.take(for: peer, now: start)
            #expect(isTaken)
        }
        let waits = (0..<14).map { _ in shares.wait(of: "flood", now: start) }
        #expect(waits.prefix(10).allSatisfy { $0 == .zero })
        #expect(waits.suffix(4) == [100, 200, 300, 400].map { .milliseconds($0) })
        #expect(shares.wait(of: "probe", now: start) == .zero)
    }

    @Test func `a peer's burst comes back with time, and grows no larger`() {
        let shares = shares()
        _ = shares.take(for: "flood", now: start)
        for _ in 0..<10 { _ = shares.wait(of: "flood", now: start) }
        let later = start + .hours(1)
        let waits = (0..<11).map { _ in shares.wait(of: "flood", now: later) }
        #expect(waits == Array(repeating: .zero, count: 10) + [.milliseconds(100)])
    }

    @Test func `a peer that leaves and comes again waits, and for a bounded time`() {
        let shares = shares()
        var waits: [Duration] = []
        for _ in 0..<1000 {
            _ = shares.take(for: "flood", now: start)
            waits.append(shares.wait(of: "flood", now: start))
            shares.giveBack(of: "flood")
        }
        #expect(waits.last == PeerShares.waitMax)
        let later = start + .seconds(5)
        _ = shares.take(for: "flood", now: later)
        #expect(shares.wait(of: "flood", now: later) == .zero)
    }

    @Test func `a peer's connections are counted while others are forgotten`() {
        let shares = shares()
        for _ in 0..<16 { _ = shares.take(for: "full", now: start) }
        for number in 0..<10_000 {
            _ = shares.take(for: "\(number)", now: start)
            shares.giveBack(of: "\(number)")
        }
        let isTaken = shares.take(for: "full", now: start)
        #expect(!isTaken)
        #expect(shares.remembered <= PeerShares.rememberedMax)
    }
}
