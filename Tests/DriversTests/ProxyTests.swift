// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import PushModel
internal import Testing

/// Through tinyproxy, which is not ours.
@Suite struct `The libcurl transport behind a proxy` {
    @Test(arguments: [
        (settings: [], credentials: ""),
        (settings: ["BasicAuth user swordfish"], credentials: "user:swordfish@"),
        (settings: ["BasicAuth user swordfish"], credentials: "%75ser:s%77ordfish@"),
    ])
    func `libcurl sends everything through one tunnel`(
        settings: [String], credentials: String
    ) throws {
        let simulator = try DeliverySimulator()
        let proxy = try TinyProxy(settings)
        let proxied = try ProxiedBench(simulator, through: proxy.url(credentials))
        proxied.bench.submit(300)
        let outcomes = proxied.bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(proxy.tunnels == ["127.0.0.1:\(simulator.port)"])
        #expect(proxied.connectionCounts.connects == 1)
        #expect(proxied.connectionCounts.connectFailures == 0)
        // Its thread counts at the end of a turn, when the last answer has come already.
        #expect(proxied.bench.wait { simulator.simulator.counts.accepted == 300 })
        #expect(simulator.simulator.recordedRequests.allSatisfy(Self.isOurs))
        #expect(!proxied.log.all.joined().contains("swordfish"))
    }

    /// Nothing of what is between the proxy and us.
    private static func isOurs(_ request: RecordedRequest) -> Bool {
        request.headers.allSatisfy {
            $0.name.hasPrefix(":") || $0.name.hasPrefix("apns-") || $0.name == "authorization"
        }
    }

    /// tinyproxy answers 407 to those who show nothing, and 401 to those who are wrong.
    @Test(arguments: [(credentials: "", status: 407), ("user:swordfish@", 401)])
    func `libcurl gives pushes back when the proxy refuses its password, never shown`(
        credentials: String, status: Int
    ) throws {
        let simulator = try DeliverySimulator()
        let proxy = try TinyProxy(["BasicAuth user other"])
        let proxied = try ProxiedBench(simulator, through: proxy.url(credentials))
        #expect(proxied.kinds(of: 3) == [.unprocessed, .unprocessed, .unprocessed])
        #expect(proxied.connectionCounts.connectFailures > 0)
        let errors = proxied.errors
        #expect(errors.count == 1)
        #expect(errors[0].contains("response \(status)"))
        #expect(errors[0].contains("a user and password that the proxy at"))
        #expect(errors[0].contains("127.0.0.1:\(proxy.port)"))
        #expect(!proxied.log.all.joined().contains("swordfish"))
        #expect(simulator.simulator.counts.connectionsOpened == 0)
    }

    @Test func `libcurl gives pushes back when the proxy refuses the port`() throws {
        let simulator = try DeliverySimulator()
        let proxy = try TinyProxy(["ConnectPort 1"])
        let proxied = try ProxiedBench(simulator, through: proxy.url())
        #expect(proxied.kinds(of: 3) == [.unprocessed, .unprocessed, .unprocessed])
        #expect(proxied.connectionCounts.connectFailures > 0)
        #expect(proxied.errors.count == 1)
        #expect(
            proxied.errors[0].contains("127.0.0.1:\(proxy.port) answers 403: check that it allows"))
        #expect(proxy.tunnels.first == "127.0.0.1:\(simulator.port)")
    }

    @Test func `libcurl gives pushes back while the proxy is down, and sends when it is up`() throws
    {
        let simulator = try DeliverySimulator()
        var proxy = try TinyProxy()
        let port = proxy.port
        proxy.stop()
        let proxied = try ProxiedBench(simulator, through: proxy.url("user:swordfish@"))
        #expect(proxied.kinds(of: 3) == [.unprocessed, .unprocessed, .unprocessed])
        #expect(proxied.connectionCounts.connectFailures > 0)
        #expect(proxied.errors.count == 1)
        #expect(proxied.errors[0].contains("check that the HTTP proxy at 127.0.0.1:\(port) runs"))
        #expect(!proxied.log.all.joined().contains("swordfish"))
        proxy = try TinyProxy(port: port)
        #expect(proxied.bench.wait { proxied.kinds(of: 1) == [.answered] })
    }

    @Test func `libcurl outlives the proxy's end with pushes in flight`() throws {
        let simulator = try DeliverySimulator { $0.delay = .milliseconds(300) }
        var proxy = try TinyProxy()
        let port = proxy.port
        let proxied = try ProxiedBench(simulator, through: proxy.url())
        #expect(proxied.kinds(of: 1) == [.answered])
        proxied.bench.submit(50)
        #expect(proxied.bench.wait { simulator.simulator.counts.accepted == 51 })
        proxy.stop()
        // The simulator has them all, and nobody knows it.
        let outcomes = proxied.bench.collect(50)
        #expect(outcomes.count == 50)
        #expect(outcomes.allSatisfy { $0.kind == .unknown })
        proxy = try TinyProxy(port: port)
        #expect(proxied.bench.wait { proxied.kinds(of: 1) == [.answered] })
    }

    @Test(arguments: [nil, "HTTP/1.1 200 Connection established\r\n\r\n"])
    func `libcurl gives pushes back when the proxy hangs, before its answer and after`(
        _ answer: String?
    ) throws {
        let simulator = try DeliverySimulator()
        let proxy = try PlayedProxy(answering: answer)
        let limits = DeliveryBench.brisk {
            $0.connectTimeout = .seconds(1)
            $0.waitMax = .seconds(1)
        }
        let proxied = try ProxiedBench(
            simulator, through: "http://u%40ser:sword%3A%2Ffish%25@127.0.0.1:\(proxy.port)",
            limits: limits)
        proxied.bench.submit(3)
        #expect(proxied.bench.wait { !proxied.errors.isEmpty })
        #expect(proxied.bench.drain())
        #expect(proxied.bench.collect(3).map(\.kind) == [.unprocessed, .unprocessed, .unprocessed])
        #expect(proxied.connectionCounts.connectFailures > 0)
        #expect(proxied.errors.count == 1)
        #expect(
            proxied.errors[0].contains(
                answer == nil ? "check that the HTTP proxy at" : "opened the tunnel"))
        #expect(!proxied.log.all.joined().contains("fish"))
        // It learns where to, and who we are to it: nothing that is for APNs.
        let heard = proxy.heard
        #expect(heard.hasPrefix("CONNECT 127.0.0.1:\(simulator.port) HTTP/1.1\r\n"))
        let shown = Data("u@ser:sword:/fish%".utf8).base64EncodedString()
        #expect(heard.contains("Proxy-Authorization: Basic \(shown)\r\n"))
        #expect(!heard.lowercased().contains("bearer") && !heard.contains("apns-"))
    }

    /// What a proxy says is not what APNs says.
    @Test func `libcurl takes no answer of the proxy's for one of APNs's`() throws {
        let simulator = try DeliverySimulator()
        let body = #"{"reason":"BadDeviceToken"}"#
        for status in ["410 Gone", "400 Bad Request", "204 No Content"] {
            let proxy = try PlayedProxy(
                answering: "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
                    + body)
            let proxied = try ProxiedBench(
                simulator, through: "http://127.0.0.1:\(proxy.port)",
                limits: DeliveryBench.brisk {
                    $0.connectTimeout = .milliseconds(300)
                    $0.waitMax = .milliseconds(600)
                })
            #expect(proxied.kinds(of: 1) == [.unprocessed])
        }
    }
}

/// The variables that curl itself obeys.
@Suite(.serialized) struct `Proxies of the environment` {
    private static func withVariables(
        _ variables: [String: String], _ body: () throws -> Void
    ) rethrows {
        for (name, value) in variables { setenv(name, value, 1) }
        defer { for name in variables.keys { unsetenv(name) } }
        try body()
    }

    @Test func `proxies of the environment are not used when none is configured`() throws {
        let simulator = try DeliverySimulator()
        let proxy = try TinyProxy()
        let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        let variables = Dictionary(uniqueKeysWithValues: names.map { ($0, proxy.url()) })
        try Self.withVariables(variables) {
            let bench = try simulator.bench(.libcurl)
            bench.submit(10)
            #expect(bench.collect(10).allSatisfy { $0.status == 200 })
            #expect(bench.drain())
        }
        #expect(proxy.tunnels.isEmpty)
    }

    @Test func `proxies of the environment do not lead around the one that is configured`() throws {
        let simulator = try DeliverySimulator()
        let proxy = try TinyProxy()
        let away = "http://127.0.0.1:1"
        let variables = ["no_proxy": "*", "NO_PROXY": "127.0.0.1,localhost", "https_proxy": away]
        try Self.withVariables(variables) {
            let proxied = try ProxiedBench(simulator, through: proxy.url())
            #expect(proxied.kinds(of: 1) == [.answered])
            #expect(proxied.bench.drain())
        }
        #expect(proxy.tunnels.count == 1)
    }
}
