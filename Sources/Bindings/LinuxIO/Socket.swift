// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// A nonblocking TCP socket, closed when it goes out of scope.
package struct Socket: ~Copyable {
    /// For the epoll set and for TLS; stays the socket's own.
    package let descriptor: CInt

    private init(owning descriptor: CInt) {
        precondition(descriptor >= 0, "a socket has an open descriptor, which is at least 0")
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    // MARK: The connecting side

    /// Begins to connect. The socket becomes writable when the connect has ended, and
    /// `pendingError()` then says how. Nagle's delay is off: we coalesce ourselves.
    /// - Parameter unacknowledgedMax: the connection dies when the peer leaves what was sent
    ///   unacknowledged for so long (TCP_USER_TIMEOUT); it also bounds the connect.
    package static func connecting(
        to address: SocketAddress, unacknowledgedMax: Duration = .seconds(20)
    ) throws(SystemError) -> Socket {
        let socket = try Socket(family: address.family)
        try socket.set(IPPROTO_TCP, TCP_NODELAY, to: 1)
        let milliseconds = CInt(clamping: unacknowledgedMax.components.seconds * 1000)
        try socket.set(IPPROTO_TCP, TCP_USER_TIMEOUT, to: milliseconds)
        let result = address.withPointer { Glibc.connect(socket.descriptor, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else { throw .last("connect") }
        return socket
    }

    /// What the connect ended with, or what has happened to the connection since; nil for nothing.
    package func pendingError() -> SystemError? {
        var code: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else {
            return .last("getsockopt")
        }
        return code == 0 ? nil : SystemError(call: "connect", code: code)
    }

    // MARK: The listening side

    /// Listens on the loopback interface only.
    /// - Parameter port: 0 lets the system choose; see `localPort()`.
    package static func listening(
        onLoopbackPort port: UInt16 = 0, backlog: CInt = 256
    ) throws(SystemError) -> Socket {
        try listening(on: .loopback(port: port), backlog: backlog)
    }

    package static func listening(
        on address: SocketAddress, backlog: CInt = 256
    ) throws(SystemError) -> Socket {
        let socket = try Socket(family: address.family)
        try socket.set(SOL_SOCKET, SO_REUSEADDR, to: 1)
        guard address.withPointer({ bind(socket.descriptor, $0, $1) }) == 0 else {
            throw .last("bind")
        }
        guard listen(socket.descriptor, backlog) == 0 else { throw .last("listen") }
        return socket
    }

    /// The next connection that waits, nonblocking and without Nagle's delay; nil when none does.
    /// A connection that its client has given up meanwhile is passed over.
    package func accept() throws(SystemError) -> Socket? {
        while true {
            let accepted = accept4(
                descriptor, nil, nil, CInt(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
            if accepted >= 0 {
                let socket = Socket(owning: accepted)
                try socket.set(IPPROTO_TCP, TCP_NODELAY, to: 1)
                return socket
            }
            switch errno {
            case EAGAIN: return nil
            case EINTR, ECONNABORTED: continue
            default: throw .last("accept4")
            }
        }
    }

    package func localPort() throws(SystemError) -> UInt16 { try localAddress().port }

    /// The address of this side.
    package func localAddress() throws(SystemError) -> SocketAddress {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length)
            }
        }
        guard result == 0 else { throw .last("getsockname") }
        return withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                SocketAddress(copying: $0, length: length)
            }
        }
    }

    // MARK: Bytes in the clear (TLS reads and writes the descriptor itself)

    package enum Transfer: Sendable {
        case bytes(Int)
        /// Nothing now; epoll says when.
        case wouldBlock
        /// The peer has closed its side.
        case closed
        case failed(SystemError)
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        precondition(
            !buffer.isEmpty, "a read has room: an empty one looks like the end of the stream")
        return transfer("recv", recv(descriptor, buffer.baseAddress, buffer.count, 0))
    }

    package func write(_ buffer: UnsafeRawBufferPointer) -> Transfer {
        precondition(
            !buffer.isEmpty, "a write has bytes: an empty one looks like the end of the stream")
        // MSG_NOSIGNAL: a peer that is gone is an answer, not a SIGPIPE.
        return transfer(
            "send", send(descriptor, buffer.baseAddress, buffer.count, CInt(MSG_NOSIGNAL)))
    }

    /// Cuts the connection with a TCP reset instead of an orderly end, as a crashed peer would.
    package func resetOnClose() {
        var immediate = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &immediate,
            socklen_t(MemoryLayout<linger>.size))
    }

    private func transfer(_ call: String, _ count: Int) -> Transfer {
        if count > 0 { return .bytes(count) }
        if count == 0 { return .closed }
        return errno == EAGAIN || errno == EINTR ? .wouldBlock : .failed(.last(call))
    }

    private init(family: CInt) throws(SystemError) {
        let type = CInt(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw .last("socket") }
        self.init(owning: descriptor)
    }

    private func set(_ level: Int, _ option: CInt, to value: CInt) throws(SystemError) {
        try set(CInt(level), option, to: value)
    }

    private func set(_ level: CInt, _ option: CInt, to value: CInt) throws(SystemError) {
        var value = value
        let size = socklen_t(MemoryLayout<CInt>.size)
        guard setsockopt(descriptor, level, option, &value, size) == 0 else {
            throw .last("setsockopt")
        }
    }
}
