// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
internal import OpenSSL

/// The thread of a `FrameServer`, which turns bytes into frames and orders into bytes.
struct FramePump: ~Copyable {
    private let shared: FrameServerState
    private let listener: Socket
    private let epoll: Epoll
    private var links: [FrameLink] = []

    private static let wakerTag = UInt64.max
    private static let listenerTag = UInt64.max - 1

    init(_ shared: FrameServerState) throws(SystemError) {
        let epoll = try Epoll()
        try epoll.add(shared.waker.descriptor, for: .read, tag: Self.wakerTag)
        guard let listener = shared.takeSocket() else {
            preconditionFailure("two pumps of one server")
        }
        try epoll.add(listener.descriptor, for: .read, tag: Self.listenerTag)
        self.init(shared, listener: listener, epoll: epoll)
    }

    private init(_ shared: FrameServerState, listener: consuming Socket, epoll: consuming Epoll) {
        self.shared = shared
        self.listener = listener
        self.epoll = epoll
    }

    /// Returns when the server is stopped, and listens no more.
    consuming func run() {
        while !shared.isEnding {
            shared.waker.prepareToSleep()
            let isBusy = shared.isEnding || links.contains { $0.connection.hasOrders }
            let count = epoll.wait(timeout: isBusy ? .zero : nil)
            shared.waker.awake()
            for index in 0..<count {
                switch epoll.event(index).tag {
                case Self.wakerTag: break
                case Self.listenerTag: accept()
                case let tag: links[Int(tag)].read()
                }
            }
            for link in links { updateInterest(link) }
        }
        for link in links { link.end(cutting: true) }
    }

    private mutating func accept() {
        while let socket = try? listener.accept() {
            let link = FrameLink(socket, shared: shared, index: links.count)
            do {
                try epoll.add(link.descriptor, for: .read, tag: UInt64(link.index))
            } catch {
                fatalError("the frame server cannot serve: \(error)")
            }
            links.append(link)
        }
    }

    private func updateInterest(_ link: FrameLink) {
        guard !link.isGone else { return }
        link.write()
        let interest = link.interest
        guard !link.isGone, interest != link.watched else { return }
        link.watched = interest
        try? epoll.modify(link.descriptor, for: interest, tag: UInt64(link.index))
    }
}

/// The socket and TLS of one connection; never leaves the server's thread.
private final class FrameLink {
    let connection: FrameConnection
    let index: Int
    var watched: Epoll.Interest = .read

    private let shared: FrameServerState
    /// The socket; nil once the connection has ended. Releasing it closes it.
    private var socket: Socket?
    private var tls: TLSStream
    private var hasTLS = false
    private var isDeaf = false
    private var wantsWritable = false
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    private var written = 0
    private var buffer = [UInt8](repeating: 0, count: 16_384)
    /// The orders that follow the bytes still to be written.
    private var orders: [FrameConnection.Order] = []
    private var prefaceOwed = preface.count

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    let descriptor: CInt

    init(_ socket: consuming Socket, shared: FrameServerState, index: Int) {
        self.shared = shared
        self.index = index
        descriptor = socket.descriptor
        tls = TLSStream(context: shared.context, descriptor: descriptor, serverName: nil)
        self.socket = consume socket
        connection = shared.connected()
    }

    var isGone: Bool { socket == nil }

    var interest: Epoll.Interest {
        var interest: Epoll.Interest = isDeaf ? [] : .read
        if wantsWritable { interest.insert(.write) }
        return interest
    }

    func read() {
        guard !isGone, !isDeaf, shakeHands() else { return }
        while !isGone {
            switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            case .bytes(let count): take(count)
            case .wantsRead, .wantsWrite: return
            case .closed, .failed: return end(cutting: false)
            }
        }
    }

    private func take(_ count: Int) {
        let skipped = min(prefaceOwed, count)
        prefaceOwed -= skipped
        input += buffer[skipped..<count]
        var start = 0
        while let frame = HTTP2Frame(reading: input, from: &start) { connection.received(frame) }
        input.removeFirst(start)
    }

    private func shakeHands() -> Bool {
        guard !hasTLS else { return true }
        switch tls.handshake() {
        case .done: hasTLS = true
        case .wantsRead, .wantsWrite: return false
        case .failed:
            end(cutting: false)
            return false
        }
        if let settings = shared.manners.settings { connection.settings(settings) }
        return true
    }

    /// Carries out what is ordered, as far as the socket takes it.
    func write() {
        guard hasTLS, !isGone else { return }
        orders += connection.takeOrders()
        wantsWritable = false
        while !isGone {
            while written < output.count {
                let transfer = output.withUnsafeBytes {
                    tls.write(UnsafeRawBufferPointer(rebasing: $0[written...]))
                }
                switch transfer {
                case .bytes(let count): written += count
                case .wantsRead, .wantsWrite:
                    wantsWritable = true
                    return
                case .closed, .failed: return end(cutting: false)
                }
            }
            output = []
            written = 0
            guard !orders.isEmpty else { return }
            carryOut()
        }
    }

    /// The next order, or all bytes up to one that is not bytes.
    private func carryOut() {
        var count = 0
        while count < orders.count, case .send(let bytes) = orders[count] {
            output += bytes
            count += 1
        }
        if count == 0 {
            count = 1
            switch orders[0] {
            case .send: break
            case .cut: end(cutting: true)
            case .halfClose: shutdown(descriptor, CInt(SHUT_WR))
            case .deafen: isDeaf = true
            }
        }
        orders.removeFirst(count)
    }

    func end(cutting: Bool) {
        if cutting { socket?.resetOnClose() }
        socket = nil
        connection.ended()
    }
}
