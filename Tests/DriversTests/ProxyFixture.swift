// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import Logging
internal import PushModel

/// tinyproxy on a free port, in the foreground and with everything in a folder of its own; ended
/// with the test.
final class TinyProxy {
    let port: UInt16
    private let process = Process()
    private let directory: ScratchDirectory

    /// Returns when it listens.
    /// - Parameters:
    ///   - settings: lines of its configuration.
    ///   - wanted: where to listen; 0 for any free port.
    init(_ settings: [String] = [], port wanted: UInt16 = 0) throws {
        directory = try ScratchDirectory()
        port = wanted == 0 ? try Socket.listening(onLoopbackPort: 0).localPort() : wanted
        let lines = [
            "Listen 127.0.0.1", "Port \(port)", "Timeout 60", "MaxClients 20",
            "LogFile \"\(directory.file("log"))\"", "LogLevel Info",
        ]
        try (lines + settings + [""]).joined(separator: "\n").write(
            toFile: directory.file("conf"), atomically: true, encoding: .utf8)
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["tinyproxy", "-d", "-c", directory.file("conf")]
        let output = KeptLogs.output(of: "tinyproxy")
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let patience = Patience()
        while !log.contains("Accepting connections"), !patience.isOver {
            usleep(2000)
        }
    }

    deinit { stop() }

    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Connections that it has been asked to tunnel, whether or not it did.
    var tunnels: [String] {
        log.split(separator: "\n").compactMap {
            guard let start = $0.range(of: "CONNECT 127.0.0.1:") else { return nil }
            return String($0[start.lowerBound...].split(separator: " ")[1])
        }
    }

    func url(_ credentials: String = "") -> String { "http://\(credentials)127.0.0.1:\(port)" }

    private var log: String {
        (try? String(contentsOfFile: directory.file("log"), encoding: .utf8)) ?? ""
    }
}

/// A scripted proxy: it records what clients send, and sends each the same answer and nothing more.
final class PlayedProxy {
    let port: UInt16
    private let process = Process()
    private let directory: ScratchDirectory

    /// - Parameter answer: said once the head of a request has come; nil for silence.
    init(answering answer: String?) throws {
        directory = try ScratchDirectory()
        port = try Socket.listening(onLoopbackPort: 0).localPort()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c", Self.program, String(port), answer ?? "", directory.file("heard"),
        ]
        process.standardError = KeptLogs.output(of: "proxy")
        try process.run()
        let patience = Patience()
        while !FileManager.default.fileExists(atPath: directory.file("heard")),
            !patience.isOver
        { usleep(2000) }
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// All that clients have sent, in the order of its coming.
    var heard: String {
        let data = try? Data(contentsOf: URL(filePath: directory.file("heard")))
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    private static let program = """
        import socket, sys, threading
        port, answer, heard = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        listener = socket.create_server(("127.0.0.1", port))
        file = open(heard, "wb", buffering=0)
        def serve(client):
            head = b""
            while True:
                data = client.recv(65536)
                if not data:
                    return
                file.write(data)
                if b"\\r\\n\\r\\n" not in head:
                    head += data
                    if b"\\r\\n\\r\\n" in head and answer:
                        client.sendall(answer.encode())
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=[client], daemon=True).start()
        """
}

/// A delivery thread behind a proxy, and all that it logs.
struct ProxiedBench {
    let bench: DeliveryBench
    /// The log lines, with their remedies.
    let log = Lines()

    init(
        _ simulator: DeliverySimulator, through proxy: String,
        limits: ConnectionLimits = DeliveryBench.brisk { $0.waitMax = .seconds(1) }
    ) throws {
        let log = log
        bench = try DeliveryBench(
            .libcurl, to: simulator.port, caFile: simulator.caFile,
            privatePEM: simulator.key.privatePEM, limits: limits, proxy: proxy,
            logger: Logger(label: "proxy") { _ in RecordingHandler(lines: log) })
    }

    var connectionCounts: ConnectionCounts { bench.connectionCounts }

    /// The lines at `error`.
    var errors: [String] { log.all.filter { $0.hasPrefix("error") } }

    /// Hands pushes over and says how they end.
    func kinds(of count: Int) -> [PushOutcome.Kind] {
        bench.submit(count)
        return bench.collect(count).map(\.kind)
    }
}
