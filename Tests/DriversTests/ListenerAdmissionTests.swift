// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import Glibc
internal import HTTPListener
internal import Synchronization
internal import Testing

/// A listener whose owner decides on requests by their heads: `Authorization: NAME` lets somebody in by
/// that name, and without it nobody may ask but for `/open`.
@Suite struct `Admission by the HTTP listener` {
    private static func fixture(
        answer: HTTPAnswer = .text("ok"), hold: ListenerFixture.Latch? = nil,
        limits change: @escaping (inout HTTPListenerSettings.Limits) -> Void = { _ in }
    ) -> ListenerFixture {
        ListenerFixture(
            answer: answer, priority: .normal,
            admission: ListenerFixture.Admission { question in
                let name = question.headers["authorization"]
                guard name != nil || question.path == "/open" else {
                    return .refused(.text("nobody knows you", status: 401))
                }
                return .admitted(
                    HTTPAdmitted(
                        caller: name ?? "", bodyBytesMax: 60_000, finding: name ?? "a stranger"))
            }, hold: hold, limits: change)
    }

    private static func put(_ bytes: Int, by name: String? = nil) -> String {
        let authorization = name.map { "Authorization: \($0)\r\n" } ?? ""
        return
            "PUT /here HTTP/1.1\r\nHost: localhost\r\n\(authorization)Content-Length: \(bytes)\r\n\r\n"
    }

    @Test func `a request is refused by its head, before its body has come`() async throws {
        let fixture = Self.fixture()
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(Self.put(5))
        let answer = client.receive { $0.hasSuffix("nobody knows you\n") } ?? ""
        #expect(answer.hasPrefix("HTTP/1.1 401 ") && answer.lowercased().contains("\r\ndate: "))
        // What comes of the body is thrown away, and the connection goes on.
        client.send("GET /" + Self.put(2, by: "me") + "ok")
        let next = client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? ""
        #expect(next.hasPrefix("HTTP/1.1 200 "))
        let questions = fixture.questions.withLock { $0 }
        #expect(questions.map(\.body) == [Array("ok".utf8)])
        #expect(questions.first?.admitted as? String == "me")
        #expect(fixture.refused.withLock { $0 } == ["PUT 401"])
        await fixture.end()
    }

    @Test func `a stranger gets one long answer a connection, and a caller any number`()
        async throws
    {
        let long = HTTPAnswer.text(String(repeating: "x", count: 100_000))
        let fixture = ListenerFixture(
            answer: long, priority: .normal,
            admission: ListenerFixture.Admission { question in
                let name = question.headers["authorization"] ?? ""
                return .admitted(HTTPAdmitted(caller: name, bodyBytesMax: 0, finding: name))
            })
        let port = try fixture.port
        func answers(to requests: String) throws -> Int {
            let client = try RawHTTPClient(port: port)
            client.send(requests)
            return (client.receive() ?? "").components(separatedBy: "HTTP/1.1 200 ").count - 1
        }
        let head = "GET /here HTTP/1.1\r\nHost: localhost\r\n"
        let last = head + "Authorization: me\r\nConnection: close\r\n\r\n"
        #expect(try answers(to: head + "\r\n" + last) == 1)
        #expect(try answers(to: head + "Authorization: me\r\n\r\n" + last) == 2)
        await fixture.end()
    }

    @Test(arguments: ["Transfer-Encoding: chunked", "Content-Length: 9223372036854775807"])
    func `a body without a known end ends with the refusal`(header: String) async throws {
        let fixture = Self.fixture()
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("PUT /here HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n\r\n")
        let answer = client.receive() ?? ""
        #expect(answer.hasPrefix("HTTP/1.1 401 ") && answer.hasSuffix("nobody knows you\n"))
        await fixture.end()
    }

    @Test func `a refused body that its client may keep back ends with the refusal`() async throws {
        let fixture = Self.fixture()
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(
            "PUT /here HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                + "Content-Length: 500\r\n\r\n" + Self.put(2, by: "me") + "ok")
        let answer = client.receive() ?? ""
        #expect(answer.hasPrefix("HTTP/1.1 401 ") && answer.hasSuffix("nobody knows you\n"))
        #expect(answer.lowercased().contains("\r\nconnection: close\r\n"))
        #expect(fixture.questions.withLock { $0.isEmpty })
        await fixture.end()
    }

    @Test func `a connection past its age ends with a refused body`() async throws {
        let fixture = Self.fixture { limits in
            limits.connectionLifetimeMax = .seconds(1)
            limits.requestTimeMax = .seconds(1000)
            limits.idleTimeout = .seconds(1000)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(Self.put(5))
        #expect(client.receive { $0.hasSuffix("nobody knows you\n") } != nil)
        try await Task.sleep(for: .seconds(2))
        client.send("whole")
        #expect(client.receive() == "")
        await fixture.end()
    }

    @Test func `a body keeps its part of the budget until its answer, though its client is gone`()
        async throws
    {
        let hold = ListenerFixture.Latch()
        let fixture = Self.fixture(hold: hold) { limits in
            limits.bodyBytesOfAllMax = 100_000
            limits.requestTimeMax = .seconds(1)
        }
        let port = try fixture.port
        let request = Self.put(40_000, by: "me") + String(repeating: "x", count: 40_000)
        func sendAndGo() throws {
            let client = try RawHTTPClient(port: port)
            client.resetOnClose()
            client.send(request)
            let patience = Patience()
            while fixture.questions.withLock({ $0.isEmpty }), !patience.isOver { usleep(1000) }
        }
        try sendAndGo()
        // The thread, which is not held, sees that before what comes now.
        let next = try RawHTTPClient(port: port)
        next.send(request)
        #expect(next.receive { $0.contains("\r\n\r\n") }?.hasPrefix("HTTP/1.1 503 ") == true)
        hold.open()
        try await waitUntil("room") {
            let client = try RawHTTPClient(port: port)
            client.send(request)
            return client.receive { $0.contains("\r\n\r\n") }?.hasPrefix("HTTP/1.1 200 ") == true
        }
        await fixture.end()
    }

    @Test func `a body that is longer than the caller may send is refused unread`() async throws {
        let fixture = Self.fixture()
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(Self.put(60_001, by: "me"))
        #expect(client.receive()?.hasPrefix("HTTP/1.1 413 ") == true)
        #expect(fixture.questions.withLock { $0.isEmpty })
        #expect(fixture.refused.withLock { $0 } == ["PUT 413"])
        await fixture.end()
    }

    @Test func `answers come in the order of their requests, whoever gives them`() async throws {
        let fixture = Self.fixture()
        let client = try RawHTTPClient(port: try fixture.port)
        let request = "GET /here HTTP/1.1\r\nHost: localhost\r\n"
        client.send(
            request + "Authorization: me\r\n\r\n" + request + "\r\n" + request
                + "Authorization: me\r\n\r\n" + request + "Connection: close\r\n\r\n")
        let lines = (client.receive() ?? "").split(whereSeparator: \.isNewline)
        #expect(
            lines.filter { $0.hasPrefix("HTTP/1.1 ") || $0 == "ok" || $0.hasPrefix("nobody") }
                .map { $0.prefix(12) } == [
                    "HTTP/1.1 200", "ok", "HTTP/1.1 401", "nobody knows", "HTTP/1.1 200", "ok",
                    "HTTP/1.1 401", "nobody knows",
                ])
        await fixture.end()
    }

    @Test func `strangers who say nothing give way to one who asks`() async throws {
        let fixture = Self.fixture { limits in
            limits.connectionsMax = 40
            limits.connectionsPerPeerMax = 40
            limits.firstHeadTimeMax = .seconds(100)
        }
        let port = try fixture.port
        // Somebody who has shown who they are keeps the place.
        let known = try RawHTTPClient(port: port)
        known.send(Self.put(2, by: "me") + "ok")
        #expect(known.receive { $0.hasSuffix("\r\n\r\nok\n") } != nil)
        // Beyond 64 that wait the oldest are closed.
        let floods = try (0..<100).map { _ in try HeldConnection(port: port) }
        for _ in 0..<20 {
            let answer = try RawHTTPClient.request(
                "GET /here", ["Host: localhost", "Authorization: me"], port: port)
            #expect(answer.hasPrefix("HTTP/1.1 200 "))
        }
        known.send(Self.put(2, by: "me") + "ok")
        #expect(known.receive { $0.hasSuffix("\r\n\r\nok\n") } != nil)
        withExtendedLifetime(floods) {}
        await fixture.end()
    }

    @Test func `a crowd from where strangers come does not come before one from elsewhere`()
        async throws
    {
        let latch = ListenerFixture.Latch()
        let fixture = ListenerFixture(
            priority: .normal,
            admission: ListenerFixture.Admission { _ in
                .admitted(HTTPAdmitted(caller: "", bodyBytesMax: 0, finding: ""))
            }, latch: latch
        ) { limits in
            limits.connectionsMax = 400
            limits.connectionsPerPeerMax = .max
        }
        let port = try fixture.port
        func ask(_ path: String, from address: String) throws -> LoopbackClient {
            let client = try LoopbackClient(from: address, port: port)
            client.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return client
        }
        try ask("/first", from: "127.0.0.2").waitUntilClosed()
        // While the listener's thread is held, they queue in the kernel.
        let held = try ask("/here", from: "127.0.0.1")
        try await waitUntil("the thread is held") {
            fixture.questions.withLock { $0.last?.path == "/here" }
        }
        let crowd = try (0..<60).map { _ in try ask("/crowd", from: "127.0.0.2") }
        let other = try ask("/other", from: "127.0.0.3")
        latch.open()
        try await waitUntil("an answer") {
            fixture.questions.withLock { $0.contains { $0.path == "/other" } }
        }
        let before = fixture.questions.withLock { questions in
            questions.prefix { $0.path != "/other" }.count { $0.path == "/crowd" }
        }
        // Four are opened at a time.
        #expect(before < 10)
        withExtendedLifetime((held, crowd, other)) {}
        await fixture.end()
    }

    @Test func `of strangers with a connection each the oldest give way`() async throws {
        let fixture = Self.fixture { limits in
            limits.connectionsMax = 40
            limits.connectionsPerPeerMax = 40
            limits.firstHeadTimeMax = .seconds(100)
        }
        let port = try fixture.port
        let strangers = try (1...20).map { try LoopbackClient(from: "127.0.1.\($0)", port: port) }
        // An eighth of the places is theirs.
        try await waitUntil("fifteen are closed") { strangers.count(where: \.isClosed) == 15 }
        #expect(strangers.suffix(5).allSatisfy { !$0.isClosed })
        await fixture.end()
    }

    @Test func `of one address's known connections those idle longest give way to its newcomers`()
        async throws
    {
        let fixture = Self.fixture { limits in
            limits.connectionsMax = 8
            limits.connectionsPerPeerMax = .max
            limits.idleTimeout = .seconds(100)
        }
        let port = try fixture.port
        func isAnswered(_ held: HeldConnection) -> Bool {
            held.client.send(Self.put(2, by: "me") + "ok")
            return held.client.receive { $0.hasSuffix("\r\n\r\nok\n") }?
                .hasPrefix("HTTP/1.1 200 ") ?? false
        }
        var held: [HeldConnection] = []
        for _ in 0..<11 {
            held.append(try HeldConnection(port: port))
            #expect(isAnswered(held.last!))
        }
        for gone in held.prefix(3) { #expect(gone.client.receive() == "") }
        for kept in held.suffix(8) { #expect(isAnswered(kept)) }
        await fixture.end()
    }

    @Test func `what is held behind an answer has its time when that is read`() async throws {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 1 << 20))
        let fixture = Self.fixture(answer: large) { limits in
            limits.requestTimeMax = .seconds(1)
            limits.answerTimeMax = .seconds(100)
            limits.idleTimeout = .seconds(100)
        }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(
            "GET /here HTTP/1.1\r\nHost: localhost\r\nAuthorization: me\r\n\r\n"
                + Self.put(2, by: "me") + "ok" + Self.put(5, by: "me") + "x")
        try await waitUntil("the first is asked") { fixture.questions.withLock { $0.count } == 1 }
        try await Task.sleep(for: .seconds(2))
        #expect((client.receive { $0.utf8.count > 2 << 20 }?.utf8.count ?? 0) > 2 << 20)
        client.send("xxxx")
        #expect((client.receive { $0.utf8.count > 1 << 20 }?.utf8.count ?? 0) > 1 << 20)
        await fixture.end()
    }

    @Test func `a connection without a first head ends in time`() async throws {
        let fixture = Self.fixture { $0.firstHeadTimeMax = .milliseconds(300) }
        let port = try fixture.port
        let silent = try RawHTTPClient(port: port)
        let slow = try RawHTTPClient(port: port)
        slow.send("GET /here HTTP/1.1\r\nHost:")
        #expect(silent.receive() == "")
        #expect(slow.receive()?.hasPrefix("HTTP/1.1 200") == false)
        await fixture.end()
    }

    @Test func `the bodies of all connections have one budget, and one caller a share of it`()
        async throws
    {
        let fixture = Self.fixture { limits in
            limits.bodyBytesOfAllMax = 160_000
            limits.requestTimeMax = .seconds(60)
        }
        let port = try fixture.port
        let greedy = try RawHTTPClient(port: port)
        greedy.send(Self.put(40_000, by: "greedy"))
        greedy.send("x")
        // The caller's share is used up, that of another is not.
        let waiting = try RawHTTPClient(port: port)
        waiting.send(Self.put(40_000, by: "greedy") + String(repeating: "x", count: 40_000))
        let other = try RawHTTPClient(port: port)
        other.send(Self.put(40_000, by: "other") + String(repeating: "x", count: 40_000))
        let isWhole = { (answer: String) in answer.hasSuffix("\r\n\r\nok\n") }
        func isOK(_ answer: String?) -> Bool { answer?.hasPrefix("HTTP/1.1 200 ") == true }
        #expect(isOK(other.receive(until: isWhole)))
        greedy.send(String(repeating: "x", count: 39_999))
        #expect(isOK(greedy.receive(until: isWhole)))
        #expect(isOK(waiting.receive(until: isWhole)))
        await fixture.end()
    }

    @Test func `who waits for the budget too long is told to come again`() async throws {
        let fixture = Self.fixture { limits in
            limits.bodyBytesOfAllMax = 60_000
            limits.requestTimeMax = .seconds(1)
        }
        let port = try fixture.port
        let first = try HeldConnection(port: port)
        first.client.send(Self.put(50_000, by: "a"))
        let second = try RawHTTPClient(port: port)
        // All of it is there, and yet it is not read before there is room.
        second.send(Self.put(50_000, by: "b") + String(repeating: "x", count: 50_000))
        let answer = second.receive { $0.contains("\r\n\r\n") } ?? ""
        // Either the first has been given up by then, or not.
        #expect(answer.hasPrefix("HTTP/1.1 503 ") || answer.hasPrefix("HTTP/1.1 200 "))
        if answer.hasPrefix("HTTP/1.1 503 ") {
            #expect(answer.lowercased().contains("\r\nretry-after: 1\r\n"))
        }
        withExtendedLifetime(first) {}
        await fixture.end()
    }

    @Test func `many who wait for the budget end in any order, and the next is answered`()
        async throws
    {
        let fixture = Self.fixture { limits in
            limits.bodyBytesOfAllMax = 120_000
            limits.requestTimeMax = .milliseconds(200)
        }
        let port = try fixture.port
        // Those that have room are given up as the others' time is over.
        for round in 0..<5 {
            let clients = try (0..<60).map { _ in try HeldConnection(port: port) }
            for (index, held) in clients.enumerated() {
                held.client.send(Self.put(50_000, by: "\(round)-\(index)") + "x")
            }
            try await Task.sleep(for: .milliseconds(450))
            withExtendedLifetime(clients) {}
        }
        try await waitUntil("somebody else is answered") {
            try RawHTTPClient.request(
                "GET /here", ["Host: localhost", "Authorization: me"], port: port
            ).hasPrefix("HTTP/1.1 200 ")
        }
        await fixture.end()
    }

    @Test func `of answers that nobody reads the oldest go`() async throws {
        let large = HTTPAnswer(
            contentType: "text/plain", body: [UInt8](repeating: 120, count: 24 << 20))
        let fixture = Self.fixture(answer: large) { limits in
            // The kernel takes some MiB of each, which count no more.
            limits.unreadBytesMax = 60 << 20
            limits.answerTimeMax = .seconds(100)
        }
        let port = try fixture.port
        let question = "GET /here HTTP/1.1\r\nHost: localhost\r\nAuthorization: me\r\n\r\n"
        let first = try RawHTTPClient(port: port)
        first.send(question)
        try await waitUntil("the first is asked") { fixture.questions.withLock { $0.count } == 1 }
        try await Task.sleep(for: .milliseconds(200))
        let others = try (0..<3).map { _ in try HeldConnection(port: port) }
        for other in others { other.client.send(question) }
        // Whoever reads meanwhile does not go.
        try await waitUntil("all are asked") { fixture.questions.withLock { $0.count } == 4 }
        try await Task.sleep(for: .milliseconds(200))
        let text = first.receive() ?? ""
        #expect(text.utf8.count < 24 << 20, "the rest went with the connection")
        let last = others[2].client.receive { $0.utf8.count > 24 << 20 }
        #expect((last?.utf8.count ?? 0) > 24 << 20)
        await fixture.end()
    }
}

/// A connection in an array.
private final class HeldConnection {
    let client: RawHTTPClient
    init(port: Int) throws { client = try RawHTTPClient(port: port) }
}

/// A connection from an address of one's choice in 127.0.0.0/8.
private final class LoopbackClient {
    private let descriptor: Int32

    init(from address: String, port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try call(address, 0, bind)
        try call("127.0.0.1", port, connect)
    }

    deinit { close(descriptor) }

    private func call(
        _ host: String, _ port: Int,
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        let result = withUnsafeBytes(of: &address) { bytes in
            let address = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return function(descriptor, address, socklen_t(bytes.count))
        }
        guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(
            Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// Whether the other end has closed the connection.
    var isClosed: Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT))
        return count == 0 || count < 0 && errno != EAGAIN
    }

    func waitUntilClosed() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while recv(descriptor, &bytes, bytes.count, 0) > 0 {}
    }
}
