// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL

/// An HTTP/2 server whose frames the test writes, one by one: for what no real server can be brought
/// to do. OpenSSL's `s_server` holds the connection; it takes one at a time.
final class CannedServer {
    private let process = Process()
    private let input = Pipe()
    private let directory: ScratchDirectory
    let port: UInt16

    /// - Parameter streamsMax: announced at once, whatever the client has shown.
    convenience init(streamsMax: UInt32) throws {
        let settings: [UInt8] = [0, 3] + Self.bigEndian(streamsMax)
        try self.init(speaking: "h2", first: Self.frame(type: 4, stream: 0, settings))
    }

    /// - Parameter bytes: what it says to the first that connects.
    init(speaking protocolName: String, first bytes: [UInt8]) throws {
        directory = try ScratchDirectory()
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate()
        let (key, certificate) = (directory.file("key.pem"), directory.file("cert.pem"))
        for (path, pem) in [
            (directory.file("ca.pem"), authority.certificatePEM), (key, made.keyPEM),
            (certificate, made.certificatePEM),
        ] { try pem.write(toFile: path, atomically: true, encoding: .utf8) }
        try Data().write(to: URL(filePath: directory.file("heard")))
        port = try Socket.listening(onLoopbackPort: 0).localPort()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            // Else it waits in a read, and says nothing meanwhile.
            "openssl", "s_server", "-nbio",
            "-quiet", "-alpn", protocolName, "-accept", "127.0.0.1:\(port)", "-cert", certificate,
            "-key", key,
        ]
        process.standardInput = input
        process.standardOutput = try FileHandle(
            forWritingTo: URL(filePath: directory.file("heard")))
        process.standardError = FileHandle.nullDevice
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(bytes))
        let deadline = ContinuousClock.now + .seconds(20)
        while !isListening, ContinuousClock.now < deadline { usleep(2000) }
    }

    /// Not by connecting, which would be the one connection that it takes.
    private var isListening: Bool {
        let place = "0100007F:" + String(format: "%04X", port)
        let sockets = try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        return sockets?.contains(place + " 00000000:0000 0A") == true
    }

    deinit { stop() }

    /// The connection breaks, and nobody listens any more.
    func stop() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func bench(
        _ kind: TransportKind, limits: ConnectionLimits = DeliveryBench.brisk()
    ) throws -> DeliveryBench {
        try DeliveryBench(
            kind, to: port, caFile: directory.file("ca.pem"),
            privatePEM: try ES256Key.generate().privatePEM, limits: limits)
    }

    // MARK: What it says

    /// An answer without a body.
    /// - Parameter isWhole: false leaves the stream open.
    func answer(_ status: Int, on stream: UInt32, isWhole: Bool = true) throws {
        // Name 8 of HPACK's static table is `:status`; the value as it is, three bytes long.
        let block = [0x08, 0x03] + Array(String(status).utf8)
        let endOfHeaders: UInt8 = 0x4
        let endOfStream: UInt8 = isWhole ? 0x1 : 0
        let frame = Self.frame(
            type: 1, flags: endOfHeaders | endOfStream, stream: stream, block)
        try input.fileHandleForWriting.write(contentsOf: Data(frame))
    }

    /// RST_STREAM with CANCEL.
    func reset(_ stream: UInt32) throws {
        let frame = Self.frame(type: 3, stream: stream, Self.bigEndian(8))
        try input.fileHandleForWriting.write(contentsOf: Data(frame))
    }

    private static func frame(
        type: UInt8, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        var frame = Array(bigEndian(UInt32(payload.count)).dropFirst())
        frame += [type, flags]
        frame += bigEndian(stream) + payload
        return frame
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    // MARK: What it hears

    /// The streams of the requests that have come as a whole, in order: libcurl 7.88 can miss an
    /// answer that comes before it has sent all of its request.
    var streams: [UInt32] {
        var heard = (try? Data(contentsOf: URL(filePath: directory.file("heard")))) ?? Data()
        // "PRI * HTTP/2.0" and what goes with it.
        heard = Data(heard.dropFirst(24))
        var streams: [UInt32] = []
        while heard.count >= 9 {
            let length = Int(heard[0]) << 16 | Int(heard[1]) << 8 | Int(heard[2])
            guard heard.count >= 9 + length else { break }
            let (type, flags) = (heard[3], heard[4])
            // DATA or HEADERS, with END_STREAM.
            if type <= 1, flags & 1 != 0 {
                streams.append(heard[5..<9].reduce(0) { $0 << 8 | UInt32($1) })
            }
            heard = Data(heard.dropFirst(9 + length))
        }
        return streams
    }
}
