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
            let isTaken = shares.take(for: "flood", now: start)
            waits.append(shares.wait(of: "flood", now: start))
            if isTaken { shares.giveBack(of: "flood") }
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
        #expect(shares.remembered <= shares.rememberedMax)
    }

    @Test func `a peer has its share of connections and no more, whatever room there is`() {
        var limits = HTTPListenerSettings.Limits()
        limits.connectionsMax = 1000
        limits.connectionsPerPeerMax = 3
        let shares = PeerShares(limits)
        let taken = (0..<4).map { _ in shares.take(for: "many", now: start) }
        #expect(taken == [true, true, true, false])
        #expect(shares.take(for: "other", now: start))
        shares.giveBack(of: "many")
        #expect(shares.take(for: "many", now: start))
        // One that has come for long has no more.
        #expect(!shares.take(for: "many", now: later))
    }

    // MARK: Many addresses

    private let later = NIODeadline.uptimeNanoseconds(31_000_000_000)

    /// Each of so many new peers connects, asks once and leaves.
    /// - Returns: how many requests were not refused, and how long the last of them waits.
    private func ask(
        _ shares: PeerShares, peers: Int = 1000, now: NIODeadline
    ) -> (taken: Int, wait: Duration) {
        var taken = 0
        var wait = Duration.zero
        for number in 0..<peers {
            let name = "\(now.uptimeNanoseconds) \(number)"
            guard shares.take(for: name, now: now) else { continue }
            wait = shares.wait(of: name, now: now)
            taken += 1
            shares.giveBack(of: name)
        }
        return (taken, wait)
    }

    @Test func `peers of many addresses are answered at five times the rate of one`() {
        let shares = shares()
        let first = ask(shares, now: start)
        #expect(first.taken == 50 && first.wait == .zero)
        // A second later there is room for as many again, and for no more after a longer time.
        #expect(ask(shares, now: start + .seconds(1)).taken == 50)
        #expect(ask(shares, now: start + .hours(1)).taken == 50)
    }

    @Test func `requests on connections that are open already wait for the rate of all`() {
        let shares = shares()
        for number in 0..<10 { _ = shares.take(for: "\(number)", now: start) }
        var waits: [Duration] = []
        for _ in 0..<6 {
            for number in 0..<10 { waits.append(shares.wait(of: "\(number)", now: start)) }
        }
        #expect(waits.prefix(50).allSatisfy { $0 == .zero })
        #expect(waits.suffix(10).first == .milliseconds(20))
        #expect(waits.last == .milliseconds(200))
    }

    @Test func `a peer that was refused once, long ago, is a stranger when it comes again`() {
        let shares = shares()
        _ = ask(shares, now: start)
        let isTakenAtFirst = shares.take(for: "once", now: start)
        let later = start + PeerShares.refusedFor
        _ = ask(shares, now: later)
        let isTaken = shares.take(for: "once", now: later)
        #expect(!isTakenAtFirst && !isTaken)
    }

    @Test func `a peer that has asked little for long is answered while others are refused`() {
        let shares = shares()
        for second in [0, 10, 20] as [Int64] {
            let now = start + .seconds(second)
            #expect(shares.take(for: "probe", now: now))
            #expect(shares.wait(of: "probe", now: now) == .zero)
            shares.giveBack(of: "probe")
            // Many come meanwhile, so that some have to be forgotten.
            for burst in 0..<9 as Range<Int64> { _ = ask(shares, now: now + .seconds(burst)) }
        }
        _ = ask(shares, now: later)
        #expect(!shares.take(for: "stranger", now: later))
        #expect(shares.take(for: "probe", now: later))
        #expect(shares.wait(of: "probe", now: later) == .zero)
    }

    @Test func `a peer whose first tries are refused is answered once it has come for long`() {
        let shares = shares()
        for second in 0..<12 as Range<Int64> {
            let now = start + .seconds(second)
            _ = ask(shares, peers: 100, now: now)
            let isTry = second == 0 || second == 10
            if isTry { #expect(shares.take(for: "probe", now: now) == (second == 10)) }
        }
        #expect(shares.wait(of: "probe", now: start + .seconds(10)) == .zero)
    }

    @Test func `a peer that is refused again and again is not taken for a probe`() {
        let shares = shares()
        for second in 0..<12 as Range<Int64> {
            let now = start + .seconds(second)
            _ = ask(shares, peers: 100, now: now)
            for _ in 0..<20 { #expect(!shares.take(for: "hammer", now: now)) }
        }
    }

    @Test func `refused peers are bounded, and those that stay away make room for a probe`() {
        let shares = shares()
        func isTaken(second: Int64) -> Bool {
            let now = start + .seconds(second)
            _ = ask(shares, peers: 100, now: now)
            return shares.take(for: "probe", now: now)
        }
        _ = ask(shares, peers: 10_000, now: start)
        #expect(shares.remembered == 50 + PeerShares.refusedMax)
        #expect(!isTaken(second: 1))
        #expect(!isTaken(second: 11))
        #expect(!isTaken(second: 26))
        #expect(isTaken(second: 36))
    }

    @Test func `a place is kept for a peer that has asked little for long`() {
        let shares = shares(requestsPerSecond: 1000)
        #expect(shares.take(for: "probe", now: start))
        shares.giveBack(of: "probe")
        var taken = 0
        for number in 0..<100 where shares.take(for: "\(number)", now: later) { taken += 1 }
        #expect(taken == 56)
        for isTaken in [true, true, false] {
            #expect(shares.take(for: "probe", now: later) == isTaken)
        }
    }

    @Test func `a peer that asks too much has no place kept`() {
        let shares = shares()
        _ = shares.take(for: "flood", now: start)
        for _ in 0..<11 { _ = shares.wait(of: "flood", now: later) }
        shares.giveBack(of: "flood")
        for number in 0..<100 { _ = shares.take(for: "\(number)", now: later) }
        #expect(!shares.take(for: "flood", now: later))
        #expect(shares.take(for: "flood", now: later + .seconds(10)))
    }

    @Test(arguments: [
        ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "20:1:d:b8:0:1:0:2/64"),
        ("2001:db8:1:2::1", "20:1:d:b8:0:1:0:2/64"), ("::1", "0:0:0:0:0:0:0:0/64"),
    ])
    func `the addresses that a host can choose from are one peer`(
        address: String, name: String
    ) {
        #expect(PeerShares.name(of: address) == name)
    }

    @Test func `an address is doubtful for ten seconds after a stranger's connection`() {
        let shares = PeerShares(HTTPListenerSettings.Limits())
        let now = NIODeadline.now()
        for name in ["caller", "stranger"] {
            #expect(shares.take(for: name, now: now) && shares.take(for: name, now: now))
            shares.giveBack(of: name, isStrangers: name == "stranger", now: now)
        }
        #expect(shares.isDoubtful("stranger", now: now + .seconds(9)))
        #expect(!shares.isDoubtful("stranger", now: now + .seconds(10)))
        for name in ["caller", "nobody"] { #expect(!shares.isDoubtful(name, now: now)) }
    }
}
