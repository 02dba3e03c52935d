// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import OpenSSL
import Testing

/// The APNs simulator as its users start it: flags, script and control socket, seen by nghttp.
@Suite(.serialized)
struct `The APNs simulator's flags` {
    private static let cooled = String(repeating: "aa", count: 32)
    private static let good = String(repeating: "bb", count: 32)

    @Test func `a simulator with flags misbehaves from its start until the control socket ends it`()
        async throws
    {
        let folder = try Folder()
        let simulator = try await folder.start([
            "--streams", "7", "--delay", "200ms",
            "--answer", "503:ServiceUnavailable token aa", "--answer", "500 token cc",
            "--command", "tokens bytes 32..100", "--control", folder.path("control"),
        ])
        let begun = ContinuousClock.now
        let cooled = try await folder.push(to: Self.cooled)
        #expect(ContinuousClock.now - begun >= .milliseconds(200))
        #expect(cooled.contains(":status: 503"), "\(cooled)")
        #expect(cooled.contains("ServiceUnavailable"), "\(cooled)")
        #expect(cooled.contains("MAX_CONCURRENT_STREAMS(0x03):7]"), "\(cooled)")
        #expect(try await folder.push(to: "cc" + Self.good.dropFirst(2)).contains(":status: 500"))
        #expect(try await folder.push(to: Self.good).contains(":status: 200"))
        #expect(try await folder.push(to: "bb").contains("BadDeviceToken"))

        #expect(try await folder.say("rules clear") == "ok\n")
        #expect(try await folder.push(to: Self.cooled).contains(":status: 200"))
        #expect(try await folder.say("status").contains(#""accepted":2"#))
        #expect(try await folder.say("quit") == "ok\n")
        #expect(try await simulator.finish() == 0)
    }

    @Test func `a flag of the APNs simulator names a script, played from the first request`()
        async throws
    {
        let folder = try Folder()
        try "from first request\nat 0s answer 429:TooManyRequests\n"
            .write(toFile: folder.path("script"), atomically: true, encoding: .utf8)
        let simulator = try await folder.start([
            "--script", folder.path("script"), "--control", folder.path("control"),
        ])
        // The first of these starts the script, by which what follows is answered.
        let patience = Patience()
        while try !folder.answerReasons().contains("TooManyRequests") {
            try #require(!patience.isOver)
            _ = try await folder.push(to: Self.good)
        }
        #expect(try await folder.say("quit") == "ok\n")
        #expect(try await simulator.finish() == 0)
    }

    @Test func `a script may end the APNs simulator`() async throws {
        let folder = try Folder()
        try "from first request\nat 100ms quit\n"
            .write(toFile: folder.path("script"), atomically: true, encoding: .utf8)
        let simulator = try await folder.start(["--script", folder.path("script")])
        while simulator.isRunning { _ = try await folder.push(to: Self.good) }
        #expect(try await simulator.finish() == 0)
    }

    @Test(arguments: [
        (["--answer", "dance"], Int32(64), "'answer dance', word 2: 'dance' will not do"),
        (["--delay", "5"], 64, "--delay: 'delay 5', word 2: '5' will not do"),
        (["--command", "quit"], 64, "'quit' is for a running simulator; say it to --control"),
        (["--script", "/nowhere"], 78, "--script: /nowhere cannot be read as UTF-8 text"),
        (["--key-file", "/nowhere"], 78, "--key-file: /nowhere cannot be read as UTF-8 text"),
        (
            ["--key-file", "/etc/passwd"], 78,
            "--key-file: /etc/passwd: the key cannot be read: it is not PEM"
        ),
        (["--key-out", "/nowhere/x"], 78, "--key-out: /nowhere/x cannot be written"),
        (["--identity", "/etc/passwd"], 78, "the certificate that was given, or its key, is"),
        (
            ["--ca-file", "/nowhere/x"], 78,
            "lamplighter-lab: cannot write /nowhere/x: No such file or directory\n"
        ),
        (["--log", "/nowhere/x"], 78, "cannot open /nowhere/x: No such file or directory\n"),
    ])
    func `flags of the APNs simulator are refused with a remedy before anything is opened`(
        arguments: [String], status: Int32, message: String
    ) async throws {
        let folder = try Folder()
        let simulator = try folder.run(
            "refused", try Fleet.lab, ["simulate", "apns"] + arguments)
        #expect(try await simulator.finish() == status)
        #expect(simulator.output.contains(message), "\(simulator.output)")
        #expect(!simulator.output.contains("127.0.0.1"))
    }
}

/// The files of one simulator and its clients; gone after the test.
private final class Folder {
    private let url = FileManager.default.temporaryDirectory
        .appending(path: "simulator-\(UUID().uuidString)")
    private var port = ""

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try Data(#"{"aps":{"content-changed":true}}"#.utf8)
            .write(to: url.appending(path: "body"))
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appending(path: name).path }

    func run(_ name: String, _ program: String, _ arguments: [String]) throws -> FleetProcess {
        try FleetProcess(
            name, program: program, arguments: arguments,
            log: url.appending(path: "\(name)-\(UUID().uuidString).log").path, input: "")
    }

    /// Returns when it serves.
    func start(_ flags: [String]) async throws -> FleetProcess {
        let simulator = try run(
            "simulator", try Fleet.lab,
            [
                "simulate", "apns", "--app", TestApp.home, "--key-out", path("key.p8"),
                "--ca-file", path("ca.pem"), "--log", path("answers"),
            ] + flags)
        try await waitUntil("the simulator to serve") {
            simulator.output.contains("ca \(path("ca.pem"))\n")
        }
        let line = try #require(simulator.output.split(separator: "\n").first)
        port = String(try #require(line.split(separator: ":").last))
        return simulator
    }

    /// All that nghttp has to say about a push.
    func push(to token: String) async throws -> String {
        let fields = [
            "authorization: \(try bearer())", "apns-topic: \(TestApp.home).push-type.controls",
            "apns-push-type: controls", "apns-priority: 10",
        ]
        let client = try run(
            "nghttp", "/usr/bin/env",
            ["nghttp", "-v", "-d", path("body")] + fields.flatMap { ["-H", $0] }
                + ["https://localhost:\(port)/3/device/\(token)"])
        _ = try await client.finish()
        return client.output
    }

    /// The control socket's answer to one line.
    func say(_ line: String) async throws -> String {
        let script = """
            import socket, sys
            control = socket.socket(socket.AF_UNIX)
            control.settimeout(5)
            control.connect(sys.argv[1])
            control.sendall((sys.argv[2] + "\\n").encode())
            sys.stdout.write(control.makefile().readline())
            """
        let client = try run(
            "control", "/usr/bin/env",
            ["python3", "-c", script, path("control"), line])
        _ = try await client.finish()
        return client.output
    }

    /// Of all pushes so far; the simulator writes them down within 100 ms.
    func answerReasons() throws -> [String] {
        struct Line: Decodable { let reason: String }
        return try String(contentsOfFile: path("answers"), encoding: .utf8)
            .split(separator: "\n").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8)).reason
            }
    }

    /// A provider token of the team and key that the simulator takes for its own unless told.
    private func bearer() throws -> String {
        let key = try ES256Key(pem: String(contentsOfFile: path("key.p8"), encoding: .utf8))
        let issuedAt = Int(Date().timeIntervalSince1970)
        let signed = [
            #"{"alg":"ES256","kid":"FGHIJ67890"}"#, #"{"iss":"ABCDE12345","iat":\#(issuedAt)}"#,
        ].map { Self.encode(Data($0.utf8)) }.joined(separator: ".")
        return "bearer \(signed).\(Self.encode(Data(try key.sign(signed.utf8))))"
    }

    private static func encode(_ bytes: Data) -> String {
        bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }
}
