// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Where a control socket listens.
package enum ControlAddress: Hashable, Sendable, CustomStringConvertible {
    /// A Unix domain socket, accessible only to the user who made it.
    case path(String)
    /// A TCP port of 127.0.0.1, accessible to everyone on the machine; 0 lets the system choose.
    case port(UInt16)

    /// Takes a number for a port and other text for a path.
    package init(_ text: String) {
        self = UInt16(text).map { .port($0) } ?? .path(text)
    }

    package var description: String {
        switch self {
        case .path(let path): path
        case .port(let port): "127.0.0.1:\(port)"
        }
    }
}

/// The listening control socket.
final class ControlListener: Sendable {
    static let clientsMax = 16

    let descriptor: CInt
    let address: ControlAddress

    init(_ address: ControlAddress) throws(SimulatorError) {
        switch address {
        case .path(let path):
            descriptor = try Self.bound(path: path)
            self.address = address
        case .port(let port):
            (descriptor, self.address) = try Self.bound(port: port)
        }
        guard listen(descriptor, CInt(Self.clientsMax)) == 0 else {
            let code = errno
            close(descriptor)
            throw Self.failure("listen", address, code)
        }
    }

    deinit {
        close(descriptor)
        if case .path(let path) = address { unlink(path) }
    }

    /// Accepts a client; nil if it has already gone.
    func accept() -> ControlClient? {
        let accepted = Glibc.accept(descriptor, nil, nil)
        guard accepted >= 0 else { return nil }
        _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        return ControlClient(owning: accepted)
    }

    private static let type = CInt(
        SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)

    private static func bound(path: String) throws(SimulatorError) -> CInt {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        // The kernel's limit of 108 bytes includes the terminating zero.
        guard bytes.count < MemoryLayout.size(ofValue: name.sun_path), !bytes.isEmpty else {
            throw SimulatorError(
                description: "\(path): a control socket's path has 1 to 107 bytes; shorten it")
        }
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw failure("socket", .path(path), errno) }
        // The mode is set before the socket has a name, so that no other user can ever connect.
        fchmod(descriptor, 0o600)
        if withAddress(name, { bind(descriptor, $0, $1) }) == 0 { return descriptor }
        var code = errno
        // The path is left over from a process that was killed: nobody listens on it.
        if code == EADDRINUSE, withAddress(name, { connect(descriptor, $0, $1) }) != 0,
            errno == ECONNREFUSED
        {
            unlink(path)
            if withAddress(name, { bind(descriptor, $0, $1) }) == 0 { return descriptor }
            code = errno
        }
        close(descriptor)
        throw failure("bind", .path(path), code)
    }

    private static func bound(
        port: UInt16
    ) throws(SimulatorError) -> (CInt, ControlAddress) {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        let descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw failure("socket", .port(port), errno) }
        var reuse: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(4))
        guard withAddress(name, { bind(descriptor, $0, $1) }) == 0 else {
            let code = errno
            close(descriptor)
            throw failure("bind", .port(port), code)
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &name) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        return (descriptor, .port(UInt16(bigEndian: name.sin_port)))
    }

    private static func withAddress<Name>(
        _ name: Name, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        withUnsafePointer(to: name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<Name>.size))
            }
        }
    }

    private static func failure(
        _ call: String, _ address: ControlAddress, _ code: CInt
    ) -> SimulatorError {
        SimulatorError(
            description: code == EADDRINUSE
                ? "control socket \(address) is taken: name another"
                : "control socket \(address): \(call): \(String(cString: strerror(code)))")
    }
}

/// One client, which gets one line in answer to each of its lines.
final class ControlClient {
    let descriptor: CInt
    private(set) var hasEnded = false
    private var pending: [UInt8] = []

    init(owning descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Reads at most 4 KiB, so that one client does not delay the others.
    func read(answering answer: (String) -> String) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        guard count > 0 else {
            hasEnded = true
            return
        }
        pending += buffer[..<count]
        while !hasEnded, let end = pending.firstIndex(of: 0x0A) {
            let line = String(decoding: pending[..<end], as: UTF8.self)
            pending.removeSubrange(...end)
            take(line, answer)
        }
        if pending.count > CommandLanguage.lineBytesMax {
            refuse("a line of more than \(CommandLanguage.lineBytesMax) bytes")
        }
    }

    /// Answers with an error, and ends the connection.
    func refuse(_ problem: String) {
        send("error: \(problem)")
        hasEnded = true
    }

    private func take(_ line: String, _ answer: (String) -> String) {
        // A web page in a browser can reach a port of this machine, and its request may look like
        // commands.
        if line.contains(" HTTP/1.") { return refuse("this is no HTTP server") }
        if line.allSatisfy(\.isWhitespace) { return }
        send(answer(line))
    }

    private func send(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // The kernel buffers thousands of answers; a client that does not read them is dropped.
        let count = Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
        if count != bytes.count { hasEnded = true }
    }
}
