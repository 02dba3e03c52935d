// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import PushModel
internal import Testing

/// What `lamplighter check` says of an APNs that leaves its push unanswered.
@Suite struct `A probe of an endpoint` {
    private static func finding(
        port: UInt16, caFile: String?, serverName: String = "localhost", proxy: String? = nil
    ) throws -> EndpointProbe.Finding {
        let tokens = try ProviderTokens(
            teamID: DeliveryBench.teamID, keyID: DeliveryBench.keyID,
            pem: try ES256Key.generate().privatePEM)
        var settings = PoolSettings(
            id: PoolID(rawValue: 0), host: "127.0.0.1", port: port, serverName: serverName,
            caFile: caFile, providerTokens: tokens)
        settings.proxy = proxy.map { Secret($0) }
        return EndpointProbe(settings).finding()
    }

    @Test func `a probe tells a closed port, certificates and HTTP by their faults`() throws {
        let simulator = try DeliverySimulator()
        let (port, caFile) = (simulator.port, simulator.caFile)
        let closed = try Self.finding(port: 1, caFile: caFile)
        #expect(closed.wrong == "takes no connection")
        #expect(closed.remedy.contains("apns.endpoints' host and port"))
        #expect(!closed.isConfiguration)

        let stranger = try Self.finding(port: port, caFile: simulator.strangersFile())
        #expect(stranger.wrong == "shows a certificate that no trusted authority has signed")
        #expect(stranger.remedy.contains("apns.caFile"))
        #expect(stranger.isConfiguration)

        let other = try Self.finding(port: port, caFile: caFile, serverName: "push.example.com")
        #expect(other.wrong == "shows a certificate that does not name push.example.com")
        #expect(other.remedy.contains("serverName"))
        #expect(other.isConfiguration)

        // The second is there and holds no certificate.
        for caFile in ["/nowhere.pem", "/etc/passwd"] {
            let unreadable = try Self.finding(port: port, caFile: caFile)
            #expect(unreadable.remedy == "apns.caFile must name a readable PEM file")
            #expect(unreadable.isConfiguration)
        }

        // Whoever answers here was not asked by the same client as the push was.
        let well = try Self.finding(port: port, caFile: caFile)
        #expect(well.wrong.hasPrefix("leaves the push unanswered, and answers "))

        let expired = try KafkaTokenEndpoint(isTLS: true, isExpired: true)
        let old = try Self.finding(port: UInt16(expired.port), caFile: expired.caFile)
        #expect(old.wrong == "shows an expired certificate")
        #expect(!old.isConfiguration)
        let web = try KafkaTokenEndpoint(isTLS: true)
        let http = try Self.finding(port: UInt16(web.port), caFile: web.caFile)
        #expect(http.wrong == "does not speak HTTP/2 (ALPN)")
        let plain = try KafkaTokenEndpoint()
        let clear = try Self.finding(port: UInt16(plain.port), caFile: nil)
        #expect(
            clear.wrong
                == "makes no TLS session: the server does not speak TLS on this port")
    }

    @Test func `a probe tells a host that only takes connections from one that cannot be reached`()
        throws
    {
        // Nobody accepts: the kernel makes the connection all the same.
        let mute = try Socket.listening(onLoopbackPort: 0)
        let finding = try Self.finding(port: mute.localPort(), caFile: nil)
        #expect(finding.wrong == "takes a connection and makes no TLS session")
        withExtendedLifetime(mute.descriptor) {}
    }

    @Test func `a probe tells a proxy that refuses from one that is away, without its password`()
        throws
    {
        let simulator = try DeliverySimulator()
        func finding(_ proxy: String) throws -> EndpointProbe.Finding {
            try Self.finding(port: simulator.port, caFile: simulator.caFile, proxy: proxy)
        }
        let strict = try TinyProxy(["BasicAuth user other"])
        for (credentials, status) in [("", 407), ("user:swordfish@", 401)] {
            let refused = try finding(strict.url(credentials))
            #expect(
                refused.wrong.hasPrefix(
                    "cannot be reached: the proxy 127.0.0.1:\(strict.port) refuses our credentials"
                ))
            #expect(refused.wrong.contains("\(status)"))
            #expect(refused.remedy == "check apns.proxy's user and password")
            #expect(!"\(refused)".contains("swordfish"))
        }
        let good = try finding(strict.url("user:other@"))
        #expect(good.wrong.hasPrefix("leaves the push unanswered, and answers "))

        let forbidding = try PlayedProxy(answering: "HTTP/1.1 403 Forbidden\r\n\r\n")
        let forbidden = try finding("http://127.0.0.1:\(forbidding.port)")
        #expect(forbidden.wrong.hasSuffix("127.0.0.1:\(forbidding.port) answers 403 to CONNECT"))
        #expect(forbidden.remedy == "let it allow CONNECT to 127.0.0.1:\(simulator.port)")

        let gone = try finding("http://user:swordfish@127.0.0.1:1")
        #expect(gone.wrong == "cannot be reached: the proxy 127.0.0.1:1 takes no connection")
        #expect(gone.remedy.contains("apns.proxy"))
    }
}
