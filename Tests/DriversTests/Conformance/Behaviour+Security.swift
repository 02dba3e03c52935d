// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Testing

/// Servers that are not APNs, or not to be trusted.
extension Behaviour {
    static let security = [
        Behaviour("A certificate of an authority that is not trusted", both: refused) { kind in
            let server = try DeliverySimulator()
            let trial = try Trial(kind, with: server, caFile: server.strangersFile(), impatient)
            trial.deliver(3)
            #expect(server.simulator.recordedRequests.isEmpty)
            #expect(trial.connectionCounts.certificatesRefused > 0)
            return trial
        },
        Behaviour("A certificate that has expired", both: refused) { kind in
            try shown(.expired, to: kind)
        },
        Behaviour("A certificate of another host", both: refused) { kind in
            try shown(.otherHost, to: kind)
        },
        Behaviour(
            "ALPN refuses h2", nghttp2: refused,
            libcurl: Promise(
                [(.unknown, 1...3), (.unprocessed, 0...2)],
                cannot: .lateALPN)
        ) { kind in
            let trial = try handshake(kind, ["-alpn", "http/1.1"])
            #expect(kind == .libcurl || trial.connectionCounts.connectFailures > 0)
            return trial
        },
        Behaviour(
            "No ALPN, and an answer in HTTP/1.1",
            nghttp2: Promise(3, .unprocessed, also: ["nothing sent"]),
            libcurl: Promise(
                [(.unknown, 1...3), (.unprocessed, 0...2)],
                cannot: .lateALPN)
        ) { kind in
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            let trial = try handshake(kind, [], saying: answer)
            #expect(trial.connectionCounts.http2Refused > 0)
            return trial
        },
        Behaviour("A server of TLS 1.1", both: refused) { kind in
            let trial = try handshake(kind, ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
            #expect(trial.connectionCounts.connectFailures > 0)
            return trial
        },
    ]

    private static let refused = Promise(3, .unprocessed, also: ["nothing sent"])

    @Sendable private static func impatient(_ limits: inout ConnectionLimits) {
        limits.waitMax = .milliseconds(500)
    }

    private static func shown(
        _ identity: FrameServer.Identity, to kind: TransportKind
    ) throws -> Trial {
        let server = try FrameServer(identity: identity)
        let trial = try Trial(kind, with: server, impatient)
        trial.deliver(3)
        #expect(server.connections.flatMap(\.requests).isEmpty)
        #expect(trial.connectionCounts.certificatesRefused > 0)
        return trial
    }

    /// OpenSSL's server.
    private static func handshake(
        _ kind: TransportKind, _ options: [String], saying text: String = ""
    ) throws -> Trial {
        let server = try ForeignServer.openssl(options, saying: text)
        let trial = try Trial(kind, with: server) {
            $0.waitMax = .milliseconds(500)
            $0.requestTimeout = .seconds(1)
        }
        trial.deliver(3)
        #expect(trial.connectionCounts.certificatesRefused == 0)
        return trial
    }
}
