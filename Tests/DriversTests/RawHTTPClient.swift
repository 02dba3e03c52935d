// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO

/// An HTTP/1.1 client that writes what it is told, byte for byte, unlike every library.
struct RawHTTPClient: ~Copyable {
    private let socket: Socket

    init(port: Int) throws { socket = try .connecting(to: .loopback(port: UInt16(port))) }

    /// Has the end of this client reset the connection.
    func resetOnClose() { socket.resetOnClose() }

    /// Says that nothing more comes.
    func sendEnd() { shutdown(socket.descriptor, CInt(SHUT_WR)) }

    /// Writes all of it, or as much as the server takes within the time.
    /// - Returns: how many bytes the server has taken.
    @discardableResult
    func send(_ text: String, within time: TimeInterval = 5) -> Int {
        let bytes = Array(text.utf8)
        let patience = Patience(.seconds(time))
        var sent = 0
        while sent < bytes.count, !patience.isOver {
            let transfer = bytes[sent...].withUnsafeBytes { socket.write($0) }
            switch transfer {
            case .bytes(let count): sent += count
            case .wouldBlock: Thread.sleep(forTimeInterval: 0.002)
            case .closed, .failed: return sent
            }
        }
        return sent
    }

    /// What has come when the server closes the connection, or when `isEnough` says so.
    /// - Returns: nil where neither happens in time.
    func receive(
        within time: TimeInterval = 20, until isEnough: ((String) -> Bool)? = nil
    ) -> String? {
        let patience = Patience(.seconds(time))
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !patience.isOver {
            switch buffer.withUnsafeMutableBytes({ socket.read(into: $0) }) {
            case .bytes(let count):
                text += buffer[..<count]
                guard let isEnough else { continue }
                let soFar = String(decoding: text, as: UTF8.self)
                if isEnough(soFar) { return soFar }
            case .wouldBlock: Thread.sleep(forTimeInterval: 0.002)
            case .closed, .failed: return String(decoding: text, as: UTF8.self)
            }
        }
        return nil
    }

    /// One request on a connection that ends with the answer.
    static func request(
        _ line: String, _ headers: [String] = ["Host: localhost"], body: String = "", port: Int
    ) throws -> String {
        let client = try RawHTTPClient(port: port)
        let lines = ["\(line) HTTP/1.1"] + headers + ["Connection: close"]
        let length = body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"]
        client.send((lines + length).joined(separator: "\r\n") + "\r\n\r\n" + body)
        return client.receive() ?? ""
    }
}
