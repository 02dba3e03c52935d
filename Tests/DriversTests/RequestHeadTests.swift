// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import HTTPListener
internal import Synchronization
internal import Testing

/// What RFC 9110 and RFC 9112 want of a server, beyond what a library does by itself.
@Suite struct `Request heads of the HTTP listener` {
    private func answer(to request: String, port: Int) throws -> String {
        let client = try RawHTTPClient(port: port)
        client.send(request)
        return client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? "no answer"
    }

    @Test(arguments: [
        ("GET /here HTTP/1.1\r\n\r\n", "400 Bad Request", "the request has no Host"),
        (
            "GET /here HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400 Bad Request",
            "the request has more than one Host"
        ),
        (
            "GET /here HTTP/1.0\r\nHost: localhost\r\nHost: other\r\n\r\n", "400 Bad Request",
            "the request has more than one Host"
        ),
        (
            "PUT /here HTTP/1.1\r\nHost: localhost\r\nExpect: a-pony\r\nContent-Length: 1\r\n\r\nx",
            "417 Expectation Failed", "of what a request may expect there is only 100-continue here"
        ),
    ])
    func `a head that is no good is refused with the reason, and the connection ends`(
        request: String, status: String, reason: String
    ) async throws {
        let fixture = ListenerFixture { _ in }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(request + "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let answer = client.receive() ?? "no end"
        #expect(answer.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(answer.prefix(60))")
        #expect(answer.hasSuffix("\r\n\r\n\(reason)\n"), "\(answer)")
        #expect(answer.contains("\r\nConnection: close\r\n"))
        #expect(fixture.questions.withLock { $0.isEmpty })
        await fixture.end()
    }

    @Test func `a refused head is answered after the requests before it`() async throws {
        let fixture = ListenerFixture { $0.requestsPerSecondMax = 20 }
        let client = try RawHTTPClient(port: try fixture.port)
        let good = "GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n"
        // The last of them have to wait for their turn.
        client.send(String(repeating: good, count: 22) + "GET /here HTTP/1.1\r\n\r\n" + good)
        let answer = client.receive() ?? "no end"
        #expect(answer.components(separatedBy: "HTTP/1.1 200 OK").count == 23)
        #expect(answer.hasSuffix("\r\n\r\nthe request has no Host\n"))
        #expect(fixture.questions.withLock { $0.count } == 22)
        await fixture.end()
    }

    @Test(arguments: ["", "Host: localhost\r\n", "Host: localhost\r\nConnection: keep-alive\r\n"])
    func `a request of HTTP/1.0 is answered, and the connection ends`(
        headers: String
    ) async throws {
        let fixture = ListenerFixture { _ in }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("GET /here HTTP/1.0\r\n\(headers)Expect: a-pony\r\n\r\n")
        let answer = client.receive(within: 5) ?? "no end"
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(answer.prefix(60))")
        #expect(answer.contains("\r\nConnection: close\r\n"))
        #expect(answer.hasSuffix("\r\n\r\nok\n"))
        await fixture.end()
    }

    @Test func `a client that wants the connection closed is told that it will be`() async throws {
        let fixture = ListenerFixture { _ in }
        let answer = try RawHTTPClient.request("GET /here", port: try fixture.port)
        #expect(answer.contains("\r\nConnection: close\r\n"))
        await fixture.end()
    }

    @Test(arguments: ["Connection: Upgrade\r\nUpgrade: h2c", "Upgrade: websocket"])
    func `a request that offers another protocol is answered, and the connection ends`(
        headers: String
    ) async throws {
        let fixture = ListenerFixture { $0.idleTimeout = .seconds(100) }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send("GET /here HTTP/1.1\r\nHost: localhost\r\n\(headers)\r\n\r\n")
        let answer = client.receive() ?? "no end"
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && answer.hasSuffix("\r\n\r\nok\n"))
        #expect(answer.contains("\r\nConnection: close\r\n"))
        await fixture.end()
    }

    @Test(arguments: [
        ("http://localhost/here?subject=a", "/here"), ("http://localhost", "/"),
        ("/here?subject=a#there", "/here"), ("/here?&subject=a&subject=b&", "/here"),
    ])
    func `a target is read in the forms that it may have`(
        target: String, path: String
    ) async throws {
        let fixture = ListenerFixture { _ in }
        _ = try RawHTTPClient.request("GET \(target)", port: try fixture.port)
        let question = fixture.questions.withLock { $0.first }
        #expect(question?.path == path)
        #expect(question?.query["subject"] == (path == "/" ? nil : "a"))
        await fixture.end()
    }

    @Test func `white space around a header's value does not count`() async throws {
        let fixture = ListenerFixture(token: "correct horse") { _ in }
        let client = try RawHTTPClient(port: try fixture.port)
        client.send(
            "PUT /here HTTP/1.1\r\nHost:localhost \t\r\nAuthorization: \t Bearer correct horse \t \r\n"
                + "Content-Length: 2 \r\nConnection: close \r\n\r\nok")
        let answer = client.receive() ?? "no end"
        #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer.prefix(60))")
        await fixture.end()
    }

    @Test func `a client that waits for it is told to send its body`() async throws {
        let fixture = ListenerFixture { $0.bodyBytesMax = 1000 }
        let client = try RawHTTPClient(port: try fixture.port)
        let head = "PUT /here HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        client.send(head + "Content-Length: 5\r\n\r\n")
        let interim = client.receive { $0.hasSuffix("\r\n\r\n") } ?? "no answer"
        #expect(interim == "HTTP/1.1 100 Continue\r\n\r\n")
        client.send("whole")
        let answer = client.receive { $0.hasSuffix("\r\n\r\nok\n") } ?? "no answer"
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(fixture.questions.withLock { $0.map(\.body) } == [Array("whole".utf8)])
        // A body that is too long is not asked for.
        client.send(head + "Content-Length: 5000\r\n\r\n")
        let refusal = client.receive() ?? "no end"
        #expect(refusal.hasPrefix("HTTP/1.1 413 "), "\(refusal.prefix(40))")
        await fixture.end()
    }
}
