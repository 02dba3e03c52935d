// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import Testing

@Suite struct `The session of an nghttp2 client` {
    @Test func `the client's session refuses a request that nghttp2 would hold back`() throws {
        var client = ClientSession()
        let streams = UnsafeMutablePointer<ClientStream>.allocate(capacity: 2)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer {
            streams.deallocate()
            buffer.deallocate()
        }
        for index in 0..<2 {
            (streams + index).initialize(
                to: ClientStream(tag: UInt32(index), body: nil, bodyBytes: 0))
        }
        // Before SETTINGS one stream is allowed, so the second has to wait.
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 3, alignment: 1)
        defer { block.deallocate() }
        block.copyBytes(from: [0x83, 0x87, 0x84])
        let header = UnsafeRawBufferPointer(block)
        let written = try client.submit(header, stream: streams, into: buffer)
        #expect(streams[0].id == 1)
        // The block is the whole payload of a HEADERS frame, which is followed by an empty DATA.
        let frames = Array(buffer[(written - 21)..<written])
        #expect(
            frames == [0, 0, 3, 1, 4, 0, 0, 0, 1, 0x83, 0x87, 0x84] + [0, 0, 0, 0, 1, 0, 0, 0, 1])
        do {
            _ = try client.submit(header, stream: streams + 1, into: buffer)
            Issue.record("a second stream was opened")
        } catch {
            let ends = client.ends.count
            #expect(ends == 0)
        }
    }

    @Test func `the client's session tells the least table size that came, not only the last`()
        throws
    {
        // SETTINGS_HEADER_TABLE_SIZE 0, then 4096: in one frame, and in one frame each.
        let (none, usual): ([UInt8], [UInt8]) = ([0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 16, 0])
        for frames in [[none + usual], [none, usual]] {
            var client = ClientSession()
            var bytes: [UInt8] = []
            for frame in frames { bytes += [0, 0, UInt8(frame.count), 4, 0, 0, 0, 0, 0] + frame }
            let received = UnsafeMutableRawBufferPointer.allocate(
                byteCount: bytes.count, alignment: 1)
            defer { received.deallocate() }
            received.copyBytes(from: bytes)
            try client.receive(UnsafeRawBufferPointer(received))
            let hasCome = client.takeSettings()
            let limits = [client.takeLeastTableLimit(), client.takeLeastTableLimit()]
            let last = client.headerTableLimit
            #expect(hasCome && limits == [0, nil] && last == 4096)
        }
    }

    @Test func `a client's session is finished when it has told a peer that it speaks no HTTP/2`()
        throws
    {
        var client = ClientSession()
        let answer = UnsafeMutableRawBufferPointer.allocate(byteCount: 28, alignment: 1)
        defer { answer.deallocate() }
        answer.copyBytes(from: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { buffer.deallocate() }
        try client.receive(UnsafeRawBufferPointer(answer))
        let wasFinished = client.isFinished
        _ = try client.serialise(into: buffer)
        let isFinished = client.isFinished
        #expect(!wasFinished && isFinished)
    }
}
