// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Worker

extension `The diagnosis of a worker` {
    @Test(
        arguments: [
            (
                .credentialRefused(.invalidProviderToken), "APNs answers InvalidProviderToken. ",
                "Check the credential's key, key ID, team and environments."
            ),
            (
                .credentialRefused(.expiredProviderToken), "APNs answers ExpiredProviderToken. ",
                "check this machine's clock (NTP)."
            ),
            (
                .credentialRefused(.tooManyProviderTokenUpdates),
                "APNs answers TooManyProviderTokenUpdates. ",
                "other programs that sign for the team."
            ),
            (
                .credentialRefused(.badEnvironmentKeyIdInToken),
                "APNs answers BadEnvironmentKeyIdInToken. ", "in the credential's environments."
            ),
            (
                .credentialRefused(.none), "APNs refuses them without a reason. ",
                "check the credential's key, key ID, team and environments."
            ),
            (
                .topicRefused(.badTopic), "APNs answers BadTopic. ",
                "check the app's bundle identifier."
            ),
            (
                .topicRefused(.topicDisallowed), "APNs answers TopicDisallowed. ",
                "Check that the credential's team owns the app."
            ),
            (
                .ill, "half of APNs's latest answers are 5xx or missing. ",
                "keeps the pushes until they expire."
            ),
            (.silent, "APNs does not answer. ", "the worker tries again by itself."),
        ] as [(TrippedBreaker.Cause, String, String)])
    func `an open circuit breaker says why and what to do`(
        cause: TrippedBreaker.Cause, words: String, end: String
    ) {
        let text = problem {
            $0.breakers = [
                TrippedBreaker(name: "credential home in production", cause: cause, probeIn: nil)
            ]
        }
        #expect(text.hasPrefix("error: Pushes of credential home in production wait: \(words)"))
        #expect(text.hasSuffix(end), "\(text)")
    }

    @Test func `a reason that nobody knows is told as APNs spells it`() {
        let text = problem {
            $0.breakers = [
                TrippedBreaker(
                    name: "credential home in production", cause: .credentialRefused(.unknown),
                    probeIn: nil, unknownReason: "Too\nNew")
            ]
        }
        #expect(
            text.hasPrefix(
                "error: Pushes of credential home in production wait: APNs answers "
                    + "\("Too\nNew".printable), which Lamplighter does not know. "), "\(text)")
        #expect(!text.contains("\n"))
    }

    @Test func `an APNs topic that is refused is told with its app`() {
        let text = problem {
            $0.breakers = [
                TrippedBreaker(
                    name: "APNs topic com.example.Car.push-type.controls in production",
                    cause: .topicRefused(.topicDisallowed), probeIn: nil, app: "com.example.Car")
            ]
        }
        #expect(
            text.hasSuffix("Check that the credential's team owns the app com.example.Car."),
            "\(text)")
    }

    @Test func `connections that fail are told, with the credential and how many there are`() {
        let text = problem {
            var pool = pool
            (pool.connections, pool.connectionsIll) = (4, 1)
            $0.pools = [pool]
        }
        let words = "warning: 1 of the 4 connections of credential home in production fail"
        #expect(text.hasPrefix(words), "\(text)")
    }

    @Test func `pushes that all fail are told, whatever connections are left`() {
        for (connections, ill) in [(0, 1), (1, 1), (1, 0)] {
            let text = problem {
                var pool = pool
                (pool.connections, pool.connectionsIll, pool.faultsInARow) = (connections, ill, 3)
                $0.pools = [pool]
            }
            #expect(
                text.hasPrefix(
                    "warning: The last 3 requests of credential home in production failed: APNs answers 5xx, "
                        + "or nothing. See Apple's system status"), "\(text)")
        }
        var few = pool
        few.faultsInARow = 2
        #expect(diagnosis { $0.pools = [few] }.problems.isEmpty)
    }

    @Test func `a signing key whose file is gone is told`() {
        var pool = pool
        pool.isKeyGone = true
        #expect(
            problem { $0.pools = [pool] }.hasPrefix(
                "warning: The key file of credential home in production was removed"))
    }

    @Test(
        arguments: [
            (Duration.seconds(1200), false, nil),
            (
                .seconds(52 * 60), false,
                "warning: The provider token of credential home in production is 52 min old, and APNs refuses"
            ),
            (
                .seconds(60 * 60), true,
                "error: The provider token of credential home in production is 60 min old, and APNs refuses it "
                    + "after an hour: nothing is sent with it. See why the service"
            ),
            (.seconds(-300), false, "production was made 5 min in the future. Compare the clock"),
            (.seconds(60), true, "warning: The file with the provider token of credential home"),
        ] as [(Duration, Bool, String?)])
    func `a provider token of another service is told when it is too old or its file unusable`(
        age: Duration, isGone: Bool, expected: String?
    ) {
        var pool = pool
        (pool.isTokenReady, pool.providerTokenAge, pool.isKeyGone) = (true, age, isGone)
        guard let expected else {
            return #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty)
        }
        let text = problem { $0.pools = [pool] }
        #expect(text.contains(expected), "\(text)")
        #expect(diagnosis { $0.pools = [pool] }.problems.count == 1)
    }

    private var pool: WorkerStatus.Pool {
        WorkerStatus.Pool(
            credential: "home", environment: "production", endpoint: "api.push.apple.com:443")
    }
    private static let unconnected =
        withoutConnection("no error yet", remedy: "")
    private static func withoutConnection(
        _ error: String, remedy: String = "; the log has the remedy of each error"
    ) -> String {
        "error: Pushes of credential home in production wait: no connection to APNs is open "
            + "(api.push.apple.com:443; \(error)). Check that this machine reaches the APNs "
            + "endpoint (DNS, TCP 443, firewall, apns.proxy) and accepts its certificate\(remedy)."
    }
    private static let unanswered =
        "error: Pushes of credential home in production wait: APNs has not answered for "

    @Test func `a pool without a connection is named while pushes wait`() {
        var pool = pool
        #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty && pool.state == .idle)
        pool.silence = .milliseconds(1499)
        #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty && pool.state == .connecting)
        pool.silence = .milliseconds(1500)
        #expect(problem { $0.pools = [pool] } == Self.unconnected)
        // Pushes that are put off end the silence, and change nothing.
        (pool.silence, pool.failedConnects) = (.zero, 1)
        #expect(problem { $0.pools = [pool] } == Self.unconnected)
        (pool.silence, pool.failedConnects) = (nil, 1)
        #expect(problem { $0.pools = [pool] } == Self.unconnected && pool.state == .unconnected)
        pool.connectError = "17.188.1.1:443: Connection refused"
        #expect(
            problem { $0.pools = [pool] }
                == Self.withoutConnection("last error: 17.188.1.1:443: Connection refused"))
        // One of two addresses may not answer.
        pool.connections = 1
        #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty && pool.state == .open)
    }

    @Test func `a pool without an answer is named while pushes wait`() {
        var pool = pool
        (pool.connections, pool.streams, pool.silence) = (1, 9, .milliseconds(1499))
        #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty && pool.state == .open)
        pool.silence = .milliseconds(1500)
        #expect(problem { $0.pools = [pool] }.hasPrefix(Self.unanswered + "1 s"))
        #expect(pool.state == .stalled)
    }

    @Test(arguments: [
        (
            "127.0.0.1:2197", "127.0.0.1:2197: connect: Connection refused",
            "connect: Connection refused"
        ),
        (
            "apns:443", "17.1.1.1:443: connect: Connection refused",
            "17.1.1.1:443: connect: Connection refused"
        ),
    ])
    func `an endpoint that is an address is named once`(endpoint: String, why: String, told: String)
    {
        var pool = pool
        (pool.endpoint, pool.connections, pool.streams, pool.failedConnects) = (endpoint, 0, 0, 1)
        pool.connectFailed(why)
        let text = problem { $0.pools = [pool] }
        #expect(text.contains("(\(endpoint); last error: \(told))"), "\(text)")
    }

    /// Only a connection on which APNs has accepted a push counts as one.
    @Test func `an APNs that answers nothing from the start is not called unreachable`() {
        var pool = pool
        (pool.streams, pool.silence) = (1, .seconds(1))
        #expect(diagnosis { $0.pools = [pool] }.problems.isEmpty && pool.state == .connecting)
        pool.silence = .seconds(3)
        #expect(problem { $0.pools = [pool] }.hasPrefix(Self.unanswered + "3 s"))
        // The request has timed out, and the next connection is not wanted yet.
        (pool.streams, pool.failedConnects, pool.hasReachedAPNs) = (0, 1, true)
        #expect(problem { $0.pools = [pool] }.hasPrefix(Self.unanswered + "3 s"))
        // Then the breaker opens.
        (pool.silence, pool.isGivenUpAsSilent) = (nil, true)
        for (streams, failedConnects) in [(1, 1), (0, 1), (0, 0)] {
            (pool.streams, pool.failedConnects) = (streams, failedConnects)
            let text = problem { status in
                status.pools = [pool]
                status.breakers = [
                    TrippedBreaker(name: pool.breakerName, cause: .silent, probeIn: .zero)
                ]
            }
            #expect(text.contains("wait: APNs does not answer. ") && pool.state == .stalled)
        }
    }

    /// Between two probes there is often no connection, and no push is on its way.
    @Test func `a pool whose breaker is open is paused, and not called connecting or open`() {
        var pool = pool
        pool.isTripped = true
        for probeIn in [.seconds(12), nil] as [Duration?] {
            pool.probeIn = probeIn
            for (connections, streams, failed) in [(0, 0, 1), (0, 1, 1), (1, 0, 0), (0, 0, 0)] {
                (pool.connections, pool.streams, pool.failedConnects) = (
                    connections, streams, failed
                )
                pool.hasReachedAPNs = failed > 0
                #expect(pool.state == .paused)
            }
        }
        // What says more than that comes first.
        (pool.failedConnects, pool.hasReachedAPNs) = (1, false)
        #expect(pool.state == .unconnected)
        (pool.streams, pool.isGivenUpAsSilent) = (1, true)
        #expect(pool.state == .stalled)
    }

    @Test func `a breaker that opened for want of a connection says so`() {
        var pool = pool
        (pool.failedConnects, pool.isGivenUpAsSilent) = (4, true)
        let text = problem { status in
            status.pools = [pool]
            status.breakers = [
                TrippedBreaker(name: pool.breakerName, cause: .silent, probeIn: .zero)
            ]
        }
        #expect(text == Self.unconnected)
        // A refused credential ends each connection. The breaker's cause is the one to tell.
        (pool.isGivenUpAsSilent, pool.hasReachedAPNs) = (false, true)
        let refused = diagnosis { status in
            status.pools = [pool]
            status.breakers = [
                TrippedBreaker(name: pool.breakerName, cause: .ill, probeIn: .zero)
            ]
        }
        #expect(refused.problems.count == 1)
        #expect(refused.summary.contains("half of APNs's latest answers"))
    }
}
