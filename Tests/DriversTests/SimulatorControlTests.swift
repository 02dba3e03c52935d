// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import Glibc
internal import Synchronization
internal import Testing

@Suite struct `The APNs simulator's control socket` {
    private func withControl(
        _ address: ControlAddress?, _ script: String? = nil,
        _ body: (SimulatorFixture, SimulatorControl, _ hasQuit: @escaping () -> Bool) throws -> Void
    ) throws {
        let fixture = try SimulatorFixture()
        let quits = Quits()
        let control = try SimulatorControl(
            fixture.simulator, address: address, script: try script.map { try SimulatorScript($0) },
            onQuit: { quits.count.add(1, ordering: .relaxed) })
        defer { control.stop() }
        try body(fixture, control) { quits.count.load(ordering: .relaxed) == 1 }
    }

    private final class Quits: Sendable { let count = Atomic<Int>(0) }

    private var path: String {
        FileManager.default.temporaryDirectory.appending(path: "ctl-\(UUID().uuidString)").path
    }

    @Test(arguments: [true, false])
    func `the control socket answers every line with one, to several clients`(isUnix: Bool) throws {
        let path = path
        try withControl(isUnix ? .path(path) : .port(0)) { fixture, control, hasQuit in
            let address = try #require(control.address)
            let first = try ControlProbe(address)
            let second = try ControlProbe(address)
            #expect(first.ask("answer 503:ServiceUnavailable") == "ok")
            #expect(try fixture.curl(CurlRequest()).reason == "ServiceUnavailable")
            #expect(second.ask("dance") == "error: word 1: 'dance' is no command; help lists them")
            #expect(second.ask("rules clear") == "ok")
            #expect(try fixture.curl(CurlRequest()).status == 200)
            let status = try #require(first.ask("status"))
            let counts = try JSONDecoder().decode([String: Int].self, from: Data(status.utf8))
            #expect(counts["accepted"] == 1 && counts["rejected"] == 1)
            #expect(counts["connectionsOpened"] == 2 && counts.count == 9)
            // Two lines in one packet, an empty one between; a part of a line waits for the rest.
            first.send("stall on\r\n\n  stall off\nref")
            #expect(first.line() == "ok")
            #expect(first.line() == "ok")
            #expect(first.ask("use 1") == "ok")
            #expect(first.ask("help") == CommandLanguage.verbs.joined(separator: " "))
            #expect(!hasQuit())
            #expect(second.ask("quit") == "ok")
            #expect(hasQuit())
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `the control socket bounds its lines and its clients, and is no HTTP server`() throws
    {
        try withControl(.port(0)) { _, control, hasQuit in
            let address = try #require(control.address)
            let long = try ControlProbe(address)
            let text = String(repeating: "x", count: 1500)
            #expect(
                long.ask(text) == "error: word 1: a line of 1500 bytes; the most are 1024")
            long.send(text)
            #expect(long.line() == "error: a line of more than 1024 bytes")
            #expect(long.line() == nil)
            let browser = try ControlProbe(address)
            let answer = browser.ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nquit")
            #expect(answer == "error: this is no HTTP server")
            #expect(browser.line() == nil)
            #expect(!hasQuit())
            let many = try (0..<16).map { _ in try ControlProbe(address) }
            for probe in many { #expect(probe.ask("stall off") == "ok") }
            let one = try ControlProbe(address)
            #expect(one.line() == "error: 16 clients are served already")
            #expect(many[15].ask("stall off") == "ok")
        }
    }

    @Test func `the control socket takes a path over from the dead and not from the living`() throws
    {
        let path = path
        try withControl(.path(path)) { fixture, control, _ in
            let error = #expect(throws: SimulatorError.self) {
                _ = try SimulatorControl(fixture.simulator, address: .path(path), onQuit: {})
            }
            #expect(error?.description.contains("is taken") == true, "\(error!)")
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
            #expect(mode as? Int == 0o600)
        }
        // What a process leaves that was killed.
        let dead = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        #expect(ControlProbe.withAddress(.path(path)) { bind(dead, $0, $1) } == 0)
        close(dead)
        try withControl(.path(path)) { _, control, _ in
            let probe = try ControlProbe(try #require(control.address))
            #expect(probe.ask("stall off") == "ok")
        }
        let long = ControlAddress.path(String(repeating: "x", count: 108))
        #expect(throws: SimulatorError.self) { try withControl(long) { _, _, _ in } }
    }

    @Test func `the control socket plays a script from the start`() throws {
        let start = """
            at 50ms answer 503:ServiceUnavailable
            at 20ms stall off
            """
        try withControl(nil, start) { fixture, _, _ in
            let isDown = try SimulatorFixture.eventually {
                try fixture.curl(CurlRequest()).status == 503
            }
            #expect(isDown)
        }
        let end = "\nat 60ms rules clear\nat 60ms quit\n"
        try withControl(nil, start + end) { fixture, _, hasQuit in
            #expect(SimulatorFixture.eventually(hasQuit))
            let answer = try fixture.curl(CurlRequest())
            #expect(answer.status == 200)
        }
    }

    @Test func `the control socket plays a script from the first request, and again each period`()
        throws
    {
        let script = """
            from first request
            every 40ms answer 500 token ff
            at 30ms quit
            """
        try withControl(nil, script) { fixture, control, hasQuit in
            Thread.sleep(forTimeInterval: 0.1)
            #expect(!hasQuit())
            let first = try fixture.curl(CurlRequest())
            #expect(first.status == 200)
            #expect(SimulatorFixture.eventually(hasQuit))
            let doomed = CurlRequest().to(token: "ff")
            for _ in 0..<2 {
                let isRefused = try SimulatorFixture.eventually {
                    try fixture.curl(doomed).status == 500
                }
                #expect(isRefused)
                #expect(control.obey("rules clear") == "ok")
            }
        }
    }
}

/// A client of a control socket; a read waits five seconds at most.
private final class ControlProbe {
    private let descriptor: CInt
    private var pending: [UInt8] = []

    init(_ address: ControlAddress) throws {
        let family = if case .path = address { AF_UNIX } else { AF_INET }
        descriptor = socket(family, CInt(SOCK_STREAM.rawValue), 0)
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = Self.withAddress(address) { connect(descriptor, $0, $1) }
        try #require(result == 0)
    }

    deinit { close(descriptor) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL))
    }

    func ask(_ line: String) -> String? {
        send(line + "\n")
        return self.line()
    }

    /// nil when the other side has closed, or says nothing.
    func line() -> String? {
        while true {
            if let end = pending.firstIndex(of: 0x0A) {
                defer { pending.removeSubrange(...end) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            pending += buffer[..<count]
        }
    }

    static func withAddress(
        _ address: ControlAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        func lend<Name>(_ name: Name) -> CInt {
            withUnsafePointer(to: name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<Name>.size))
                }
            }
        }
        switch address {
        case .path(let path):
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            return lend(name)
        case .port(let port):
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            return lend(name)
        }
    }
}
