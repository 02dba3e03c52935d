// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Synchronization
internal import Testing

@Suite struct `Sockets and epoll` {
    @Test func `sockets and epoll connect, carry bytes both ways and report the end`() throws {
        let listener = try Socket.listening()
        let epoll = try Epoll()
        let client = try Socket.connecting(to: .loopback(port: listener.localPort()))
        try epoll.add(client.descriptor, for: .write, tag: 7)
        #expect(epoll.wait(timeout: .seconds(5)) == 1)
        #expect(epoll.event(0).tag == 7 && epoll.event(0).isWritable)
        #expect(client.pendingError() == nil)
        guard let server = try listener.accept() else {
            Issue.record("nobody connected")
            return
        }
        #expect(sent([1, 2, 3], on: server) == 3)
        try epoll.modify(client.descriptor, for: .read, tag: 8)
        #expect(epoll.wait(timeout: .seconds(5)) == 1)
        #expect(epoll.event(0).tag == 8 && epoll.event(0).isReadable)
        #expect(received(on: client) == [1, 2, 3])
        #expect(received(on: client) == nil)
        try epoll.remove(client.descriptor)
        #expect(sent([4], on: server) == 1)
        #expect(epoll.wait(timeout: .milliseconds(20)) == 0)
    }

    @Test func `sockets and epoll tell that nobody listens`() throws {
        let port = try Socket.listening().localPort()
        let epoll = try Epoll()
        let client = try Socket.connecting(to: .loopback(port: port))
        try epoll.add(client.descriptor, for: .write, tag: 0)
        #expect(epoll.wait(timeout: .seconds(5)) == 1)
        let error = client.pendingError()
        #expect(error?.isRefusal == true)
        #expect(error?.description == "connect: Connection refused")
    }

    @Test func `sockets and epoll have no connection to accept when none waits`() throws {
        let accepted = try Socket.listening().accept()
        if accepted != nil { Issue.record("a connection out of nothing") }
    }

    @Test func `sockets and epoll refuse a port that is taken, in words`() throws {
        let first = try Socket.listening()
        let port = try first.localPort()
        #expect(throws: SystemError.self) { _ = try Socket.listening(onLoopbackPort: port) }
        withExtendedLifetime(first.descriptor) {}
    }

    private func sent(_ bytes: [UInt8], on socket: borrowing Socket) -> Int? {
        guard case .bytes(let count) = bytes.withUnsafeBytes({ socket.write($0) }) else {
            return nil
        }
        return count
    }

    private func received(on socket: borrowing Socket) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let transfer = bytes.withUnsafeMutableBytes { socket.read(into: $0) }
        guard case .bytes(let count) = transfer else { return nil }
        return Array(bytes[..<count])
    }
}

@Suite struct `The resolver` {
    @Test(arguments: [("192.0.2.7", "192.0.2.7:443"), ("2001:db8::7", "[2001:db8::7]:443")])
    func `the resolver knows numeric hosts at once`(host: String, text: String) throws {
        let resolver = Resolver(waker: Waker())
        resolver.resolve(host: host, port: 443, tag: 3)
        let answers = resolver.collect()
        #expect(answers.map(\.tag) == [3])
        #expect(try answers.first?.result.get().map(\.description) == [text])
        #expect(resolver.collect().isEmpty)
    }

    @Test func `the resolver answers for a name later, and wakes the one who asked`() throws {
        let waker = Waker()
        let epoll = try Epoll()
        try epoll.add(waker.descriptor, for: .read, tag: 0)
        let resolver = Resolver(waker: waker)
        resolver.resolve(host: "localhost", port: 80, tag: 1)
        #expect(epoll.wait(timeout: .seconds(10)) == 1)
        let addresses = try resolver.collect().first?.result.get() ?? []
        #expect(!addresses.isEmpty)
        #expect(addresses.allSatisfy { $0.port == 80 })
    }

    @Test func `the resolver tells why a name has no address`() throws {
        let waker = Waker()
        let epoll = try Epoll()
        try epoll.add(waker.descriptor, for: .read, tag: 0)
        let resolver = Resolver(waker: waker)
        resolver.resolve(host: "no such host", port: 80, tag: 1)
        #expect(epoll.wait(timeout: .seconds(10)) == 1)
        let answers = resolver.collect()
        #expect(throws: ResolverError.self) { try answers.first?.result.get() }
    }
}

@Suite struct `A named thread` {
    @Test func `a named thread runs its body to the end before it is joined`() throws {
        let ran = Box()
        let thread = try NamedThread.start(name: "fifteen-bytes-x") {
            ran.value.store(true, ordering: .releasing)
        }
        thread.join()
        let hasRun = ran.value.load(ordering: .acquiring)
        #expect(hasRun)
    }

    private final class Box: Sendable {
        let value = Atomic<Bool>(false)
    }
}
