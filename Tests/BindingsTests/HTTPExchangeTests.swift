// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import Testing

/// Against Python's HTTP server, which repeats what it was asked.
@Suite struct `One HTTP exchange` {
    private static func failure(_ exchange: HTTPExchange) -> ExchangeFailure? {
        do throws(ExchangeFailure) {
            let answer = try exchange.perform()
            Issue.record("answered \(answer.status)")
            return nil
        } catch {
            return error
        }
    }

    @Test func `an HTTP exchange sends what it was given, and of its own only what HTTP needs`()
        throws
    {
        let server = try EchoServer()
        var exchange = HTTPExchange(url: "\(server.url)/path?a=b")
        exchange.headers = [("content-type", "text/plain"), ("accept", "*/*")]
        exchange.credentials = ("us er", "pass:word")
        exchange.body = Array("hello".utf8)
        let answer = try exchange.perform()
        #expect(answer.status == 201)
        #expect(!answer.isHTTP2)
        #expect(
            String(decoding: answer.body, as: UTF8.self).split(separator: "\n").sorted() == [
                "POST /path?a=b", "accept: */*", "authorization: Basic dXMgZXI6cGFzczp3b3Jk",
                "body: hello", "content-length: 5", "content-type: text/plain",
                "host: 127.0.0.1:\(server.port)",
            ])

        var get = HTTPExchange(url: server.url + "/")
        get.headers = [("accept", "*/*")]
        let text = String(decoding: try get.perform().body, as: UTF8.self)
        #expect(text == "GET /\nhost: 127.0.0.1:\(server.port)\naccept: */*\nbody: \n")
        // The length is the body's, to the byte.
        get.answerBytesMax = text.utf8.count
        #expect(try get.perform().body.count == text.utf8.count)
        get.answerBytesMax -= 1
        #expect(Self.failure(get)?.kind == .tooLarge)
    }

    @Test func `one HTTP exchange says why there is no answer, in the same words each time`() throws
    {
        var closed = HTTPExchange(url: "http://127.0.0.1:1/")
        let first = try #require(Self.failure(closed))
        #expect(first.kind == .refused)
        for _ in 1...3 { #expect(Self.failure(closed) == first) }
        closed.proxy = HTTPProxy("http://127.0.0.1:1")
        #expect(Self.failure(closed)?.kind == .refused)
        #expect(Self.failure(HTTPExchange(url: "gopher://127.0.0.1/"))?.kind == .notHTTP)

        let server = try EchoServer()
        #expect(
            Self.failure(HTTPExchange(url: "https://127.0.0.1:\(server.port)/"))?.kind
                == .handshake)
        var slow = HTTPExchange(url: server.url + "/slow")
        slow.timeout = .milliseconds(500)
        #expect(Self.failure(slow)?.kind == .answerTimeout)
        #expect(Self.failure(HTTPExchange(url: server.url + "/rude"))?.kind == .lost)
    }
}

/// Ends with its standard input, so that none outlives the tests.
private final class EchoServer {
    let port: Int
    private let process = Process()
    private let input = Pipe()

    var url: String { "http://127.0.0.1:\(port)" }

    init() throws {
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.program]
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        // One line, written as soon as it listens.
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        port = try #require(Int(line.trimmingCharacters(in: .newlines)))
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    private static let program = """
        import http.server, sys, threading, time

        class Echo(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/slow":
                    time.sleep(20)
                if self.path == "/rude":
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                lines = [self.command + " " + self.path]
                lines += [name.lower() + ": " + value for name, value in self.headers.items()]
                lines += ["body: " + body, ""]
                answer = "\\n".join(lines).encode()
                self.send_response(201)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        print(server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        """
}
