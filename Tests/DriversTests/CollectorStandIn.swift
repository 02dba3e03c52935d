// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// An OpenTelemetry collector on Python's HTTP server, which keeps what it is sent and answers as it
/// is told. It ends with the test.
final class CollectorStandIn {
    enum Behaviour: CustomStringConvertible {
        case status(Int, retryAfter: Int? = nil)
        case silence
        /// Answers 200 after a while.
        case slow(seconds: Double)

        var description: String {
            switch self {
            case .status(let status, let retryAfter):
                "\(status) " + (retryAfter.map { "\($0)" } ?? "")
            case .silence: "silence"
            case .slow(let seconds): "slow \(seconds)"
            }
        }
    }

    struct Request: Decodable {
        var path: String
        /// By lower-case name.
        var headers: [String: String]
        var bytes: Int
    }

    private let server: PythonServer

    init(_ behaviour: Behaviour = .status(200)) throws {
        server = try PythonServer(program: Self.program)
        behave(behaviour)
        try server.start()
    }

    var endpoint: String { "http://127.0.0.1:\(server.port)" }

    func behave(_ behaviour: Behaviour) { server.behave(behaviour) }

    /// Writes a file beside the server's, and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        try server.write(text, to: name)
        return server.directory.file(name)
    }

    var requests: [Request] { server.requests() }

    private static let program = #"""
        import http.server, json, os, sys, threading, time

        folder = sys.argv[1]

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with open(folder + "/requests", "a") as file:
                    line = {"path": self.path, "headers": headers, "bytes": len(body)}
                    file.write(json.dumps(line) + "\n")
                behaviour = open(folder + "/behaviour").read().split()
                if behaviour == ["silence"]:
                    time.sleep(3600)
                if behaviour[0] == "slow":
                    time.sleep(float(behaviour[1]))
                    behaviour = ["200"]
                self.send_response(int(behaviour[0]))
                if len(behaviour) > 1:
                    self.send_header("Retry-After", behaviour[1])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        with open(folder + "/port.new", "w") as file:
            file.write(str(server.server_port))
        os.rename(folder + "/port.new", folder + "/port")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        """#
}
