// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
package import LinuxIO

/// A connection to the simulator's control socket. Commands do not wait for their answers, which
/// `listen` delivers.
package final class SimulatorLine {
    private let socket: Socket
    private var output: [UInt8] = []
    private var input: [UInt8] = []

    package struct Status: Decodable, Hashable {
        package var requestsOpen: Int
    }

    /// The most bytes of unsent commands; the simulator reads them within milliseconds.
    private static let outputBytesMax = 64 << 10

    package init(port: UInt16) throws(SystemError) {
        socket = try Socket.connecting(to: .loopback(port: port))
    }

    package func say(_ command: String) {
        guard output.count < Self.outputBytesMax else { return }
        output += Array((command + "\n").utf8)
        send()
    }

    /// Passes on the counts and the errors that have arrived.
    package func listen(onStatus: (Status) -> Void, onProblem: (String) -> Void) {
        send()
        receive()
        while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
            let line = Data(input[..<end])
            input.removeSubrange(...end)
            if line.starts(with: Data("error".utf8)) {
                onProblem("APNs simulator: \(String(decoding: line, as: UTF8.self))")
            } else if let status = try? JSONDecoder().decode(Status.self, from: line) {
                onStatus(status)
            }
        }
    }

    private func send() {
        guard !output.isEmpty else { return }
        let transfer = output.withUnsafeBytes { socket.write($0) }
        if case .bytes(let count) = transfer { output.removeFirst(count) }
    }

    private func receive() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ socket.read(into: $0) }) {
            input += buffer[..<count]
        }
    }
}
