// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import PushModel
internal import Testing

/// Against servers that are not ours: nghttp2's and OpenSSL's.
@Suite struct `Both transports and foreign servers` {
    @Test(arguments: TransportKind.allCases)
    func `nghttpd answers every push on one connection`(_ kind: TransportKind) throws {
        let server = try ForeignServer.nghttpd()
        let bench = try server.bench(kind)
        bench.submit(300)
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(bench.drain())
        #expect(bench.connectionCounts.connects == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `answers with pages that are not Apple's have a status and no reason`(
        _ kind: TransportKind
    ) throws {
        let server = try ForeignServer { files, port in
            // It serves files, and has none for a device.
            (
                "nghttpd",
                [
                    "--address=127.0.0.1", "--htdocs=\(files.folder)", port, files.key,
                    files.certificate,
                ]
            )
        }
        let bench = try server.bench(kind)
        bench.submit(500)
        let outcomes = bench.collect(500)
        #expect(outcomes.count == 500)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 404 })
        #expect(outcomes.allSatisfy { $0.reason == .none })
        #expect(bench.connectionCounts.connects == 1)
    }

    /// libcurl tells by the answer, so the first push has been sent; nghttp2 sends it none.
    @Test(arguments: [(TransportKind.nghttp2, PushOutcome.Kind.unprocessed), (.libcurl, .unknown)])
    func `a server without HTTP/2 is told from one that answers`(
        _ kind: TransportKind, _ end: PushOutcome.Kind
    ) throws {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        let server = try ForeignServer.openssl(saying: answer)
        let bench = try server.bench(kind, limits: DeliveryBench.brisk { $0.waitMax = .seconds(1) })
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [end])
        #expect(bench.wait { bench.connectionCounts.http2Refused > 0 })
    }
}
