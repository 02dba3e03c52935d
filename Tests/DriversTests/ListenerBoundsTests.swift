// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import HTTPListener
internal import Synchronization
internal import Testing

/// What clients of a listener can hold, and for how long.
@Suite struct `Bounds of the HTTP listener` {
    @Test func `a request that is too large is refused and costs no other`() async throws {
        let fixture = ListenerFixture { limits in
            limits.headerBytesMax = 4096
            limits.bodyBytesMax = 1000
        }
        let port = try fixture.port
        let long = String(repeating: "x", count: 5000)
        let header = try RawHTTPClient.request(
            "GET /here", ["Host: localhost", "X-Long: \(long)"], port: port)
        #expect(header.hasPrefix("HTTP/1.1 431 "), "\(header.prefix(40))")
        #expect(header.hasSuffix("are too long: at most 4096 bytes and 64 headers\n"))
        let line = try RawHTTPClient.request("GET /here?\(long)", port: port)
        #expect(
            line.hasPrefix("HTTP/1.1 431 ") && line.contains("the request line and the headers"))
        let many = (0..<100).map { "X-\($0): 1" }
        let count = try RawHTTPClient.request("GET /here", ["Host: localhost"] + many, port: port)
        #expect(count.hasPrefix("HTTP/1.1 431 ") && count.contains("and 64 headers\n"))
        let body = try RawHTTPClient.request("PUT /here", body: long, port: port)
        #expect(body.hasPrefix("HTTP/1.1 413 "), "\(body.prefix(40))")
        #expect(try RawHTTPClient.request("PUT /here", body: "x", port: port).contains(" 200 "))
        #expect(fixture.questions.withLock { $0.map(\.body) } == [Array("x".utf8)])
        await fixture.end()
    }

    @Test func `clients that send nothing make room for others in time`() async throws {
        let fixture = ListenerFixture { limits in
            limits.connectionsMax = 2
            limits.idleTimeout = .milliseconds(300)
        }
        let port = try fixture.port
        let first = try RawHTTPClient(port: port)
        let second = try RawHTTPClient(port: port)
        second.send("GET /here HTT")
        // It waits until one of them is closed.
        let answer = try RawHTTPClient.request("GET /here", port: port)
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(first.receive() == "")
        #expect(second.receive()?.hasPrefix("HTTP/1.1 200") == false)
        await fixture.end()
    }

    /// As on a machine whose cores others keep busy: the thread gets no time to read, and closed what had
    /// come long ago as soon as it got some.
    @Test func `what a client has sent in time is answered, however late it is read`() async throws
    {
        let limit = Duration.seconds(3)
        let patience = Patience()
        var isDone = false
        while !isDone {
            try #require(!patience.isOver, "this machine is too slow to say anything")
            let latch = ListenerFixture.Latch()
            let fixture = ListenerFixture(priority: .normal, latch: latch) { limits in
                limits.firstHeadTimeMax = limit
                limits.idleTimeout = limit
                limits.requestTimeMax = limit
            }
            let port = try fixture.port
            let question = "GET /there HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let begun = ContinuousClock.now
            let new = try RawHTTPClient(port: port)
            let slow = try RawHTTPClient(port: port)
            slow.send("PUT /there HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n")
            let kept = try RawHTTPClient(port: port)
            kept.send(question)
            #expect(kept.receive { $0.hasSuffix("served here\n") } != nil)
            let holder = try RawHTTPClient(port: port)
            holder.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await waitUntil("the thread to stand still") {
                fixture.questions.withLock { $0.last?.path == "/here" }
            }
            // Otherwise this machine was too slow to say anything.
            if ContinuousClock.now - begun < limit / 2 {
                new.send(question)
                slow.send("whole")
                kept.send(question)
                try await Task.sleep(for: limit + .milliseconds(500))
                latch.open()
                for answer in [
                    new.receive { $0.hasSuffix("served here\n") },
                    slow.receive { $0.hasSuffix("served here\n") },
                    kept.receive { $0.hasSuffix("served here\n") },
                ] { #expect(answer?.hasPrefix("HTTP/1.1 404 ") == true, "\(answer ?? "none")") }
                isDone = true
            }
            latch.open()
            await fixture.end()
        }
    }

    @Test func `a client that never reads its answer loses its connection`() async throws {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 64 << 20))
        let fixture = ListenerFixture(answer: large) { limits in
            limits.answerTimeMax = .seconds(1)
            limits.idleTimeout = .seconds(100)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try await Task.sleep(for: .seconds(2))
        let text = client.receive()
        #expect(text != nil && text!.utf8.count < 64 << 20, "the rest went with the connection")
        await fixture.end()
    }

    @Test func `a request is over in time, however little of its body comes at a time`()
        async throws
    {
        let fixture = ListenerFixture { $0.requestTimeMax = .milliseconds(500) }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("PUT /here HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n")
        var sent = 0
        while sent < 1000, client.send("x") == 1 {
            sent += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(sent < 1000, "it goes on for as long as bytes come")
        #expect(fixture.questions.withLock { $0.isEmpty })
        await fixture.end()
    }

    @Test func `a request is over in time, however much comes that is no part of it`() async throws
    {
        let fixture = ListenerFixture(priority: .normal) { limits in
            limits.requestTimeMax = .milliseconds(300)
            limits.connectionLifetimeMax = .seconds(1000)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("PUT /here HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;")
        // An extension of a chunk.
        let more = String(repeating: "x", count: 65_536)
        let patience = Patience(.seconds(20))
        while !patience.isOver, client.send(more) == more.utf8.count {}
        #expect(!patience.isOver, "it goes on for as long as bytes come")
        #expect(fixture.questions.withLock { $0.isEmpty })
        await fixture.end()
    }

    @Test func `a client that sends far more requests than can wait loses its connection`()
        async throws
    {
        let fixture = ListenerFixture(priority: .normal) { limits in
            limits.requestsPerSecondMax = 5
            limits.connectionLifetimeMax = .seconds(1000)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(String(repeating: "GET /here HTTP/1.1\r\nHost: x\r\n\r\n", count: 1000))
        client.sendEnd()
        #expect(client.receive() != nil, "it is closed")
        #expect(fixture.questions.withLock { $0.count } < 1000)
        await fixture.end()
    }

    @Test(arguments: ["Content-Length: 60000", "Transfer-Encoding: chunked"])
    func `where no body is read, a request with one is refused without waiting for it`(
        header: String
    ) async throws {
        let fixture = ListenerFixture { $0 = .probes }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n\r\n")
        let answer = client.receive() ?? ""
        #expect(answer.hasPrefix("HTTP/1.1 413 "), "\(answer.prefix(40))")
        #expect(fixture.questions.withLock { $0.isEmpty })
        await fixture.end()
    }

    @Test func `a connection that is used again and again ends with a whole answer`() async throws {
        let fixture = ListenerFixture { $0.connectionLifetimeMax = .milliseconds(500) }
        let client = try RawHTTPClient(port: try fixture.port)
        var answers = 0
        while answers < 1000 {
            client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? "no end"
            guard !answer.isEmpty else { break }
            #expect(answer.hasSuffix("\r\n\r\nok\n"))
            answers += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(answers < 1000, "it goes on for as long as it is used")
        await fixture.end()
    }

    @Test func `one address holds no more than its share, and another is answered meanwhile`()
        async throws
    {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 64 << 20))
        let fixture = ListenerFixture(answer: large) { limits in
            limits.connectionsMax = 6
            limits.connectionsPerPeerMax = 4
            limits.idleTimeout = .seconds(100)
            limits.requestTimeMax = .seconds(100)
            limits.answerTimeMax = .seconds(100)
        }
        let port = try fixture.port
        let slow = try RawHTTPClient(port: port)
        let alsoSlow = try RawHTTPClient(port: port)
        let stuck = try RawHTTPClient(port: port)
        let alsoStuck = try RawHTTPClient(port: port)
        let body = "PUT /here HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx"
        slow.send(body)
        alsoSlow.send(body)
        let question = "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stuck.send(question)
        alsoStuck.send(question)
        // A fifth is closed at once, again and again.
        for _ in 0..<10 {
            let fifth = try RawHTTPClient(port: port).receive()
            try #require(fifth == "")
        }
        let other = try ForeignProgram.run(
            "curl",
            ["--silent", "--interface", "127.0.0.2", "http://127.0.0.1:\(port)/there"])
        #expect(other.output == "nothing is served here\n")
        for sent in [slow.send("x"), alsoSlow.send("x")] { #expect(sent == 1) }
        for sent in [stuck.send("G"), alsoStuck.send("G")] { #expect(sent == 1) }
        await fixture.end()
    }

    @Test func `a flood of requests is answered whole, at the rate of one address`() async throws {
        let fixture = ListenerFixture { $0.requestsPerSecondMax = 20 }
        let client = try RawHTTPClient(port: try fixture.port)
        let begun = ContinuousClock.now
        client.send(
            String(repeating: "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 49)
                + "PUT /here HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nwhole")
        var answers = 0
        while answers < 50 {
            let answer = client.receive { $0.hasSuffix("\r\n\r\nok\n") }
            let more = answer?.components(separatedBy: "HTTP/1.1 200 OK").count ?? 1
            try #require(more > 1, "no answer after \(answers)")
            answers += more - 1
        }
        // The first twenty need not wait.
        #expect(ContinuousClock.now - begun >= .milliseconds(1400))
        #expect(fixture.questions.withLock { $0.last?.body } == Array("whole".utf8))
        // The connection goes on.
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let next = client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? ""
        #expect(next.hasSuffix("\r\n\r\nok\n"))
        await fixture.end()
    }

    @Test func `a connection is read on after one request that had to wait`() async throws {
        let fixture = ListenerFixture { $0.requestsPerSecondMax = 5 }
        let client = try RawHTTPClient(port: try fixture.port)
        let request = "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n"
        // The last waits for 200 ms, with nothing behind it.
        client.send(String(repeating: request, count: 6))
        var answers = 0
        while answers < 6 {
            let answer = client.receive { $0.hasSuffix("\r\n\r\nok\n") }
            let more = answer?.components(separatedBy: "HTTP/1.1 200 OK").count ?? 1
            try #require(more > 1, "no answer after \(answers)")
            answers += more - 1
        }
        client.send(request)
        let next = client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? ""
        #expect(next.hasSuffix("\r\n\r\nok\n"))
        await fixture.end()
    }

    @Test func `one address is answered twenty times a second by the probes' listener`()
        async throws
    {
        let fixture = ListenerFixture { $0 = .probes }
        let client = try RawHTTPClient(port: try fixture.port)
        let begun = ContinuousClock.now
        client.send(
            String(repeating: "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 31)
                + "GET /here HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        let answers = client.receive()?.components(separatedBy: "HTTP/1.1 200 OK").count
        #expect(answers == 33)
        // Twelve of them wait, a twentieth of a second each.
        #expect(ContinuousClock.now - begun >= .milliseconds(550))
        await fixture.end()
    }

    @Test func `what a client does not read takes little of the kernel's memory`() async throws {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 4 << 20))
        let fixture = ListenerFixture(answer: large, priority: .normal)
        let port = try fixture.port
        let client = try RawHTTPClient(port: port)
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        // The listener's thread may get its turn late.
        var queued = 0
        for _ in 0..<100 where queued == 0 {
            try await Task.sleep(for: .milliseconds(100))
            queued = try sentAndUnread(port: port)
        }
        try await Task.sleep(for: .seconds(1))
        queued = try sentAndUnread(port: port)
        #expect(queued > 0 && queued <= 192 << 10, "\(queued) bytes")
        let sent = client.send("G")
        #expect(sent == 1, "the connection is open still")
        await fixture.end()
    }

    /// What the kernel has still to send, of the connections to this port; see proc_net_tcp(5).
    private func sentAndUnread(port: Int) throws -> Int {
        let hexadecimal = String(port, radix: 16, uppercase: true)
        let local = "0100007F:" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal
        var most = 0
        // It comes a page at a time, of which Foundation would read the first alone.
        let table = try ForeignProgram.run("cat", ["/proc/net/tcp"]).output
        for line in table.split(separator: "\n") {
            let fields = line.split(separator: " ").map(String.init)
            guard fields.count > 4, fields[1] == local, fields[3] == "01" else { continue }
            let queue = fields[4].split(separator: ":")[0]
            most = max(most, Int(queue, radix: 16) ?? 0)
        }
        return most
    }
}
