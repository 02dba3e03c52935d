// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import FleetKit
internal import Testing

@Suite struct `The libcurl binding` {
    @Test func `this libcurl speaks HTTP/2`() {
        #expect(CurlLibrary.speaksHTTP2)
        #expect(CurlLibrary.version.hasPrefix("libcurl/"))
    }

    @Test func `a connect that is refused says so, and that nothing was dispatched`() throws {
        var multi = MultiHandle(streamsMax: 10)
        var easy = EasyHandle(position: 7, template: Self.template(port: 1), on: multi)
        // The handle and the multi handle serve again after an end.
        for round in 1...2 {
            let end = try #require(Self.run(&easy, on: &multi, tag: UInt32(round)))
            #expect(end.position == 7)
            #expect(end.code.cause == .connect)
            let (tag, status, text) = (easy.tag, easy.status, easy.errorText)
            let (wasDispatched, isEstablished) = (easy.wasDispatched, multi.isEstablished)
            #expect(tag == UInt32(round))
            #expect(status == 0)
            #expect(text.contains("port 1"))
            #expect(!wasDispatched && !isEstablished)
            multi.remove(easy)
            multi.restart()
        }
    }

    @Test func `a request that nothing answers ends at its deadline`() throws {
        var multi = MultiHandle(streamsMax: 10)
        // TEST-NET-1 (RFC 5737): no host has it.
        var template = Self.template(port: 443)
        template.host = "192.0.2.1"
        template.connectTimeout = .milliseconds(50)
        var easy = EasyHandle(position: 0, template: template, on: multi)
        let end = try #require(Self.run(&easy, on: &multi, tag: 1))
        #expect(end.code.cause == .timeout || end.code.cause == .connect)
        let wasDispatched = easy.wasDispatched
        #expect(!wasDispatched)
        multi.remove(easy)
    }

    @Test func `headers keep their text however long they grow`() throws {
        let multi = MultiHandle(streamsMax: 10)
        var easy = EasyHandle(position: 0, template: Self.template(port: 1), on: multi)
        let long = [UInt8](repeating: 0x61, count: 3000)
        for _ in 0..<3 {
            easy.headers.removeAll()
            long.withUnsafeBufferPointer { easy.headers.append("x-long", $0) }
            let line = "x-long: " + String(decoding: long, as: UTF8.self)
            let lines = easy.headers.lines
            #expect(lines == Self.suppressed + [line])
        }
    }

    private static let suppressed = ["Accept:", "Content-Type:", "Content-Length:", "Expect:"]

    private static func template(port: UInt16) -> RequestTemplate {
        RequestTemplate(
            url: "https://localhost/", host: "127.0.0.1", port: port, caFile: nil,
            connectTimeout: .seconds(5), requestTimeout: .seconds(5))
    }

    /// Drives libcurl without epoll, by asking it again and again.
    private static func run(
        _ easy: inout EasyHandle, on multi: inout MultiHandle, tag: UInt32
    ) -> MultiHandle.End? {
        easy.prepare(tag: tag, target: "/3/device/00", body: nil, bodyBytes: 0)
        multi.add(easy)
        let patience = Patience()
        while !patience.isOver {
            multi.kick()
            if let end = multi.nextEnd() { return end }
        }
        return nil
    }
}
