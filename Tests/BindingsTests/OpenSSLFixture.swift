// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import OpenSSL

/// A directory of one test, removed at its end.
final class ScratchDirectory {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func write(_ text: String, _ name: String) throws -> String {
        let file = url.appending(path: name)
        try text.write(to: file, atomically: true, encoding: .utf8)
        return file.path
    }
}

/// Runs the `openssl` program, which uses the same library but other code.
enum OpenSSLProgram {
    static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}

/// A client and a server that talk over the loopback interface, both on the test's thread.
final class TLSPair {
    private let clientSocket: Socket
    private let serverSocket: Socket
    var client: TLSStream
    var server: TLSStream

    init(client clientContext: TLSContext, server serverContext: TLSContext, name: String) throws {
        let listener = try Socket.listening()
        clientSocket = try Socket.connecting(to: .loopback(port: try listener.localPort()))
        var accepted: Socket?
        let patience = Patience()
        while accepted == nil, !patience.isOver {
            accepted = try listener.accept()
        }
        guard let accepted else { throw TLSError(text: "nothing to accept") }
        serverSocket = accepted
        client = TLSStream(
            context: clientContext, descriptor: clientSocket.descriptor, serverName: name)
        server = TLSStream(
            context: serverContext, descriptor: serverSocket.descriptor, serverName: nil)
    }

    /// Completes the handshake. Returns the error of either side; nil if both succeeded.
    func shakeHands() -> TLSError? {
        let patience = Patience()
        var clientIsUp = false
        var serverIsUp = false
        while !clientIsUp || !serverIsUp {
            if !clientIsUp {
                let progress = client.handshake()
                if case .failed(let error) = progress { return error }
                clientIsUp = progress == .done
            }
            if !serverIsUp {
                let progress = server.handshake()
                if case .failed(let error) = progress { return error }
                serverIsUp = progress == .done
            }
            if patience.isOver {
                return TLSError(text: "no handshake")
            }
        }
        return nil
    }

    /// Writes all of `bytes` to the server and reads them there.
    func send(_ bytes: [UInt8]) -> [UInt8] {
        var sent = 0
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 20_000)
        let patience = Patience()
        while received.count < bytes.count, !patience.isOver {
            if sent < bytes.count {
                let written = bytes.withUnsafeBytes {
                    client.write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
                }
                if case .bytes(let count) = written { sent += count }
            }
            let read = buffer.withUnsafeMutableBytes { server.read(into: $0) }
            if case .bytes(let count) = read { received += buffer[..<count] }
        }
        return received
    }

    /// What the server reads next, other than "not yet".
    func serverReads() -> TLSTransfer {
        var buffer = [UInt8](repeating: 0, count: 100)
        let patience = Patience()
        while !patience.isOver {
            let read = buffer.withUnsafeMutableBytes { server.read(into: $0) }
            if read != .wantsRead { return read }
        }
        return .wantsRead
    }
}
