// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation

/// An OpenTelemetry collector on Python's HTTP server, which keeps what it is sent and answers as it
/// is told. It ends with the test.
final class CollectorStandIn {
    enum Behaviour: CustomStringConvertible {
        case status(Int, retryAfter: Int? = nil)
        case silence

        var description: String {
            switch self {
            case .status(let status, let retryAfter):
                "\(status) " + (retryAfter.map { "\($0)" } ?? "")
            case .silence: "silence"
            }
        }
    }

    struct Request: Decodable {
        var path: String
        /// By lower-case name.
        var headers: [String: String]
        var bytes: Int
    }

    private let process = Process()
    /// The server's standard input. The server ends when this pipe is closed.
    private let input = Pipe()
    private let directory: ScratchDirectory
    private(set) var port = 0

    init(_ behaviour: Behaviour = .status(200)) throws {
        directory = try ScratchDirectory()
        behave(behaviour)
        for (name, text) in [("program.py", Self.program), ("requests", "")] {
            try text.write(toFile: directory.file(name), atomically: true, encoding: .utf8)
        }
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["python3", directory.file("program.py"), directory.path]
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let deadline = ContinuousClock.now + .seconds(60)
        while port == 0, ContinuousClock.now < deadline {
            let text = try? String(contentsOfFile: directory.file("port"), encoding: .utf8)
            port = text.flatMap { Int($0) } ?? 0
            usleep(5000)
        }
        if port == 0 { throw Timeout(description: "the collector does not start") }
    }

    deinit {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    var endpoint: String { "http://127.0.0.1:\(port)" }

    func behave(_ behaviour: Behaviour) {
        try! "\(behaviour)".write(
            toFile: directory.file("behaviour"), atomically: true, encoding: .utf8)
    }

    /// Writes a file beside the server's.
    func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: directory.file(name), atomically: true, encoding: .utf8)
        return directory.file(name)
    }

    var requests: [Request] {
        let text = (try? String(contentsOfFile: directory.file("requests"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Request.self, from: Data($0.utf8))
        }
    }

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
