// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import PushModel
internal import Testing

/// Against nginx and a server of Python's h2.
@Suite struct `Both transports and servers that judge` {
    /// nginx says GOAWAY on each connection's thousandth request. It answers in the place of a server
    /// behind it, so never before it has the whole of a request: libcurl 7.88 can miss an answer that
    /// comes earlier, until the request's deadline.
    private static func nginx() throws -> ForeignServer {
        try ForeignServer { files, port in
            let folder = files.folder
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map { "\($0)_temp_path \(folder)/\($0);" }.joined(separator: " ")
            // One process, so that its end is the end of all.
            let configuration = """
                daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/errors;
                events { worker_connections 1024; }
                http {
                    access_log off; \(temporary) keepalive_requests 1000;
                    server {
                        listen 127.0.0.1:\(port) ssl http2;
                        ssl_certificate \(files.certificate); ssl_certificate_key \(files.key);
                        location / { proxy_pass http://unix:\(folder)/origin; }
                    }
                    server { listen unix:\(folder)/origin; return 200; }
                }
                """
            _ = FileManager.default.createFile(
                atPath: folder + "/conf", contents: Data(configuration.utf8))
            return (
                "/usr/sbin/nginx", ["-p", folder, "-e", folder + "/errors", "-c", folder + "/conf"]
            )
        }
    }

    /// All outcomes of so many pushes, never more of them under way than there are slots.
    private static func outcomes(of pushes: Int, on bench: DeliveryBench) -> [PushOutcome] {
        var outcomes: [PushOutcome] = []
        while outcomes.count < pushes {
            let some = min(2000, pushes - outcomes.count)
            let slots = bench.submit(some)
            let ends = bench.collect(some)
            #expect(ends.count == some)
            #expect(Set(ends.map(\.slot)) == Set(slots))
            guard ends.count == some else { return outcomes }
            outcomes += ends
        }
        return outcomes
    }

    @Test func `nginx ends connections again and again, and nghttp2 gets every answer`() throws {
        let server = try Self.nginx()
        let bench = try server.bench(.nghttp2)
        let outcomes = Self.outcomes(of: 6000, on: bench)
        #expect(outcomes.count == 6000)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        let counts = bench.connectionCounts
        #expect(counts.connects >= 6 && counts.connects <= 12)
        #expect(counts.goAways >= 5)
        #expect(counts.connectionsLost == 0)
    }

    /// libcurl cannot tell what a GOAWAY left out: no more than was in flight then is unknown. What it has
    /// not sent it gives back.
    @Test func `nginx ends connections again and again, and libcurl gets most answers`() throws {
        let server = try Self.nginx()
        let bench = try server.bench(.libcurl)
        let outcomes = Self.outcomes(of: 6000, on: bench)
        #expect(outcomes.count == 6000)
        #expect(
            outcomes.allSatisfy { $0.status == 200 || [.unknown, .unprocessed].contains($0.kind) })
        #expect(outcomes.count { $0.status == 200 } > 3000)
        let connects = Int(bench.connectionCounts.connects)
        #expect(connects >= 6 && connects <= 12)
        let unknown = outcomes.filter { $0.kind == .unknown }.count
        #expect(unknown <= 100 * (connects - 1))
    }

    @Test(arguments: TransportKind.allCases)
    func `Python's h2 finds no fault in a thousand requests, and its answers are understood`(
        _ kind: TransportKind
    ) throws {
        let server = try PythonPeer.start()
        let bench = try server.bench(kind)
        var numbers = Array(0..<1000)
        var rounds = 0
        while !numbers.isEmpty {
            try #require(rounds < 100)
            let slots =
                rounds == 0 ? bench.submit(1000) : numbers.flatMap { bench.submit(1, from: $0) }
            let asked = Dictionary(uniqueKeysWithValues: zip(slots, numbers))
            let outcomes = bench.collect(numbers.count)
            try #require(outcomes.count == numbers.count)
            // On a busy machine a connection may be given up before they were sent: they are sent again.
            let answered = outcomes.filter { $0.kind != .unprocessed }
            let misunderstood = answered.filter { outcome in
                asked[outcome.slot].map { !PythonPeer.answered(outcome, to: $0) } ?? true
            }
            #expect(misunderstood.isEmpty, "\(misunderstood.count), as \(misunderstood[0])")
            numbers = outcomes.filter { $0.kind == .unprocessed }.compactMap { asked[$0.slot] }
            rounds += 1
        }
        #expect(bench.drain())
        let report = try PythonPeer.report(of: server)
        #expect(report.protocolErrors == [])
        #expect(report.complaints == [])
        #expect(report.requests == 1000)
        #expect(rounds > 1 || report.connections == 1)
    }

    @Test func `Python's h2 can find fault`() throws {
        let server = try PythonPeer.start()
        let request = [
            "--silent", "--http2", "--cacert", server.file("ca.pem"), "--data", "{}",
            "https://localhost:\(server.port)/3/device/00",
        ]
        // It may not listen yet.
        #expect(
            try SimulatorFixture.eventually { try ForeignProgram.run("curl", request).status == 0 })
        let judged = try PythonPeer.report(of: server)
        #expect(judged.protocolErrors == [])
        #expect(judged.complaints.contains { $0.hasPrefix("unknown header user-agent") })
        #expect(judged.complaints.contains { $0.hasPrefix("body is") })
        #expect(judged.complaints.contains { $0.hasPrefix("apns-topic is None") })
        let speech = "printf 'GET / HTTP/1.1\\r\\n\\r\\n%100s'"
        let client = "openssl s_client -quiet -alpn h2 -connect 127.0.0.1:\(server.port)"
        _ = try ForeignProgram.run("sh", ["-c", "\(speech) | \(client)"])
        #expect(
            try SimulatorFixture.eventually {
                try PythonPeer.report(of: server).protocolErrors.count == 1
            })
    }
}
