// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import Glibc
internal import HTTPListener
internal import LinuxIO
internal import PushModel
internal import Synchronization
internal import Testing

@Suite struct `HTTP listener` {
    @Test func `a request is answered with the headers that make a browser careful`() async throws {
        let fixture = ListenerFixture()
        let answer = try RawHTTPClient.request(
            "GET /here?subject=garage%20door&subject=other", port: try fixture.port)
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(answer.hasSuffix("\r\n\r\nok\n"))
        let lines = answer.lowercased()
        for header in [
            "content-type: text/plain; charset=utf-8", "content-length: 3",
            "cache-control: no-store", "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'; frame-ancestors 'none'",
            "referrer-policy: no-referrer",
        ] {
            #expect(lines.contains("\r\n\(header)\r\n"), "\(header)")
        }
        #expect(!lines.contains("access-control"))
        #expect(fixture.questions.withLock { $0.map(\.query) } == [["subject": "garage door"]])
        await fixture.end()
    }

    @Test(arguments: ["/here?subject=%FF", "/here?subject=a%C3&app=b", "/here?subject=%ED%A0%80"])
    func `a query that is not UTF-8 is refused, and not replaced`(target: String) async throws {
        let fixture = ListenerFixture()
        let port = try fixture.port
        let answer = try RawHTTPClient.request("GET \(target)", port: port)
        #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("the query is not UTF-8"))
        let other = try RawHTTPClient.request("GET /here?subject=%C3%BC%zz", port: port)
        #expect(other.hasPrefix("HTTP/1.1 200 "))
        #expect(fixture.questions.withLock { $0.count } == 1)
        await fixture.end()
    }

    @Test func `a path that is not served is not found, and a HEAD has no body`() async throws {
        let fixture = ListenerFixture()
        let port = try fixture.port
        #expect(try RawHTTPClient.request("GET /there", port: port).hasPrefix("HTTP/1.1 404 "))
        let head = try RawHTTPClient.request("HEAD /here", port: port)
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"))
        #expect(try RawHTTPClient.request("PATCH /here", port: port).hasPrefix("HTTP/1.1 405 "))
        let brew = try RawHTTPClient.request("BREW /here", port: port)
        #expect(
            brew.hasPrefix("HTTP/1.1 400 ") && brew.hasSuffix("\r\n\r\nthis is no method of HTTP\n")
        )
        await fixture.end()
    }

    @Test func `a page on the Internet cannot ask a listener on loopback`() async throws {
        let fixture = ListenerFixture()
        let port = try fixture.port
        for (host, status) in [
            ("localhost", 200), ("LOCALHOST:\(port)", 200), ("127.0.0.1:\(port)", 200),
            ("[::1]:\(port)", 200), ("rebound.example", 421), ("localhost.example:80", 421),
        ] {
            let answer = try RawHTTPClient.request("GET /here", ["Host: \(host)"], port: port)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(host): \(answer.prefix(30))")
        }
        await fixture.end()
    }

    @Test func `a page of another site cannot ask a listener on loopback`() async throws {
        let fixture = ListenerFixture()
        let port = try fixture.port
        let page = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]
        for (request, headers, status) in [
            ("GET /here", ["Sec-Fetch-Site: cross-site"], 403),
            // Another port of this host is the same site.
            ("GET /here", ["Sec-Fetch-Site: same-site"], 403),
            ("GET /here", ["Sec-Fetch-Site: same-origin"], 200),
            ("GET /here", ["Sec-Fetch-Site: none"] + page, 200),
            ("POST /here", ["Origin: http://evil.example"], 403),
            ("POST /here", ["Origin: null"], 403),
            ("POST /here", ["Origin: http://localhost:1"], 403),
            ("POST /here", ["Origin: http://LOCALHOST:\(port)"], 200),
            // A link may open the start page, which is not served here, in a tab and in no frame.
            ("GET /", ["Sec-Fetch-Site: cross-site"] + page, 404),
            ("GET /here", ["Sec-Fetch-Site: cross-site"] + page, 403),
            ("POST /", ["Sec-Fetch-Site: cross-site"] + page, 403),
            ("GET /", ["Sec-Fetch-Site: cross-site", page[0], "Sec-Fetch-Dest: iframe"], 403),
        ] {
            let answer = try RawHTTPClient.request(
                request, ["Host: localhost:\(port)"] + headers, port: port)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(request) \(headers)")
        }
        await fixture.end()
    }

    @Test func `only who shows the token is answered where one is set`() async throws {
        let fixture = ListenerFixture(token: "correct horse")
        let port = try fixture.port
        for (authorization, status) in [
            ("Bearer correct horse", 200), ("bearer correct horse", 200), ("Bearer correct", 401),
            ("Bearer correct horsf", 401), ("Basic correct horse", 401), ("Bearer ", 401),
        ] {
            let answer = try RawHTTPClient.request(
                "GET /here", ["Host: worker-1.example", "Authorization: \(authorization)"],
                port: port)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(authorization)")
            if status == 401 { #expect(answer.lowercased().contains("www-authenticate: bearer")) }
        }
        let none = try RawHTTPClient.request("GET /here", port: port)
        #expect(none.hasPrefix("HTTP/1.1 401 "))
        #expect(fixture.questions.withLock { $0.count } == 2)
        await fixture.end()
    }

    @Test func `a path that is open needs no token, and no other is`() async throws {
        let fixture = ListenerFixture(token: "correct horse", openPaths: ["/here"])
        let port = try fixture.port
        for (path, status) in [
            ("/here", 200), ("/here?token=none", 200), ("/there", 401), ("/here/", 401),
            ("/%68ere", 401), ("//here", 401),
        ] {
            let answer = try RawHTTPClient.request("GET \(path)", port: port)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(path)")
        }
        await fixture.end()
    }

    @Test func `a port that another program has is named with what to do`() async throws {
        let taken = try Socket.listening()
        let port = Int(try taken.localPort())
        let listener = HTTPListener(
            HTTPListenerSettings(name: "health", host: "127.0.0.1", port: port)
        ) { _ in .notFound }
        do {
            try await listener.run()
            Issue.record("it listens on a port that is taken")
        } catch {
            let text = "\(error)"
            #expect(text.hasPrefix("health cannot listen on 127.0.0.1:\(port): "), "\(text)")
            #expect(text.contains("choose another health.port"))
        }
    }

    @Test func `a host that there is not is named with what to do`() async throws {
        let listener = HTTPListener(
            HTTPListenerSettings(name: "health", host: "no-such-host.invalid", port: 0)
        ) { _ in .notFound }
        let failure = await #expect(throws: HTTPListenerFailure.self) { try await listener.run() }
        let text = failure?.description ?? ""
        #expect(text.contains("health.host must be an address of this machine"), "\(text)")
    }

    @Test func `a port that fails ends the listener with the cause`() async throws {
        let fixture = ListenerFixture(priority: .normal)
        let port = try fixture.port
        for descriptor in CInt(3)..<4096 where Self.listens(descriptor, on: port) {
            shutdown(descriptor, CInt(SHUT_RDWR))
        }
        let result = await fixture.result
        let failure = #expect(throws: (any Error).self) { try result?.get() }
        #expect("\(failure.map { "\($0)" } ?? "none")".contains("accept"))
    }

    private static func listens(_ descriptor: CInt, on port: Int) -> Bool {
        var isListening: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0 else {
            return false
        }
        var address = sockaddr_in()
        length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length) == 0
            }
        }
        return isListening == 1 && isNamed && address.sin_family == AF_INET
            && Int(address.sin_port.bigEndian) == port
    }

    @Test func `a listener that is cancelled before it has a port says of none that it has it`()
        async throws
    {
        for _ in 0..<50 {
            let bound = Mutex<[Int]>([])
            let listener = HTTPListener(
                HTTPListenerSettings(name: "health", host: "127.0.0.1", port: 0),
                isBound: { port in bound.withLock { $0.append(port) } }, answer: { _ in .notFound })
            let run = Task { try await listener.run() }
            run.cancel()
            try await run.value
            #expect(!bound.withLock { $0.contains(0) })
        }
    }

    @Test func `everything runs on one thread of low priority`() async throws {
        let fixture = ListenerFixture()
        let port = try fixture.port
        for _ in 0..<3 { _ = try RawHTTPClient.request("GET /here", port: port) }
        let found = try ThreadStatus.all(of: getpid()).map(\.scheduling)
        #expect(found.contains("batch, nice 10"), "\(found)")
        await fixture.end()
    }

    @Test func `a client that has sent all and says so is answered all`() async throws {
        let fixture = ListenerFixture { $0.requestsPerSecondMax = 5 }
        let client = """
            import socket, sys
            client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            client.sendall(b"GET /here HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n" * 8)
            client.shutdown(socket.SHUT_WR)
            print(len(client.makefile().read().split("200 OK")) - 1)
            """
        let run = try ForeignProgram.run("python3", ["-c", client, "\(try fixture.port)"])
        #expect(run.output == "8\n", "\(run)")
        await fixture.end()
    }

    @Test func `a listener that ends answers what it was asked, and closes what is idle`()
        async throws
    {
        let latch = ListenerFixture.Latch()
        let fixture = ListenerFixture(priority: .normal, latch: latch)
        let port = try fixture.port
        let idle = try RawHTTPClient(port: port)
        idle.send("GET /there HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(idle.receive { $0.hasSuffix("served here\n") } != nil)
        let asking = try RawHTTPClient(port: port)
        asking.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try await waitUntil("the question") { fixture.questions.withLock { $0.count == 2 } }
        let end = Task { await fixture.end() }
        try await Task.sleep(for: .milliseconds(50))
        latch.open()
        #expect(asking.receive()?.hasSuffix("\r\n\r\nok\n") == true)
        #expect(idle.receive() == "")
        await end.value
    }

    @Test func `an end waits for no client that does not read its answer`() async throws {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 64 << 20))
        let fixture = ListenerFixture(answer: large, priority: .normal) {
            $0.answerTimeMax = .seconds(1000)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try await waitUntil("the question") { fixture.questions.withLock { !$0.isEmpty } }
        try await Task.sleep(for: .milliseconds(200))
        let end = ListenerFixture.Latch()
        Task.detached {
            await fixture.end()
            end.open()
        }
        try await waitUntil("the end") { end.isOpen }
        #expect((client.receive() ?? "").utf8.count < 64 << 20)
    }
}
