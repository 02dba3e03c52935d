// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import Testing

/// Our encoder against nghttp2's decoder, which is not ours.
@Suite struct `The HPACK encoder` {
    @Test func `the HPACK encoder is read back as it was written, block after block`() throws {
        var pair = try SessionPair(constants: [("apns-topic", "com.example.Home")])
        for number in 0..<300 {
            let id = "id-\(number)"
            let headers = try pair.exchange { encoder, constants in
                encoder.append(ConstantHeader(number: 0), of: constants)
                Array(id.utf8).withUnsafeBufferPointer {
                    encoder.append(unique: $0, named: ConstantHeader(number: 1), of: constants)
                }
            }
            try #require(headers == ["apns-topic: com.example.Home", "apns-id: \(id)"])
        }
    }

    @Test func `the HPACK encoder writes what repeats as one byte, and indexes nothing unique`()
        throws
    {
        var pair = try SessionPair(constants: [("apns-topic", "com.example.Home")])
        var sizes: [Int] = []
        for _ in 0..<3 {
            _ = try pair.exchange { encoder, constants in
                encoder.append(ConstantHeader(number: 0), of: constants)
                [UInt8](repeating: 0x61, count: 36).withUnsafeBufferPointer {
                    encoder.append(unique: $0, named: ConstantHeader(number: 1), of: constants)
                }
            }
            sizes.append(pair.blockBytes)
        }
        // First both in full; then the topic's index, and the name's index in two bytes, a length
        // and the value.
        let inFull = (1 + 1 + 10 + 1 + 16) + (1 + 1 + 7 + 1 + 36)
        #expect(sizes == [inFull, 1 + 2 + 1 + 36, 1 + 2 + 1 + 36])
    }

    @Test func `the HPACK encoder stays in step when the table overflows or the peer shrinks it`()
        throws
    {
        let constants = (0..<200).map { ("x-constant-\($0)", String(repeating: "v", count: $0)) }
        var pair = try SessionPair(constants: constants)
        for turn in 0..<3 {
            if turn == 1 { pair.shrinkTable(to: 0) }
            if turn == 2 { pair.shrinkTable(to: 512) }
            for number in 0..<200 {
                let headers = try pair.exchange { encoder, text in
                    encoder.append(ConstantHeader(number: 0), of: text)
                    encoder.append(ConstantHeader(number: number), of: text)
                }
                let (name, value) = constants[number]
                try #require(headers == ["x-constant-0: ", "\(name): \(value)"])
            }
        }
    }

    @Test func `the HPACK encoder lets a new value push old ones out, and all are still read back`()
        throws
    {
        var pair = try SessionPair(constants: [("authorization", "")])
        // 13 + 900 + 32 bytes an entry: four fill the table, and the others push them out.
        for generation in 0..<6 {
            let value = [UInt8](repeating: 0x41 + UInt8(generation), count: 900)
            var sizes: [Int] = []
            for request in 0..<10_002 where generation > 3 || request < 3 {
                let headers = try pair.exchange { encoder, constants in
                    if request == 0 { encoder.forget(ConstantHeader(number: 0)) }
                    value.withUnsafeBufferPointer {
                        encoder.append(
                            repeated: $0, named: ConstantHeader(number: 0), of: constants)
                    }
                }
                try #require(headers.first?.utf8.dropFirst(15).elementsEqual(value) == true)
                sizes.append(pair.blockBytes)
            }
            #expect(sizes.last == 1)
        }
    }
}

/// A client's and a server's session in memory; the server notes the headers that it reads.
private struct SessionPair: ~Copyable {
    private var client = ClientSession()
    private let collector: HeaderCollector
    private let server: ServerSession
    private var encoder: HPACKEncoder
    private let constants: HeaderConstants
    private let authority: ConstantHeader
    private let streams = UnsafeMutablePointer<ClientStream>.allocate(capacity: 1)
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private(set) var blockBytes = 0

    /// One constant more than given is the name `apns-id`; the last is what every request needs.
    init(constants list: [(String, String)]) throws {
        var constants = HeaderConstants()
        for (name, value) in list { _ = constants.add(name, value) }
        _ = constants.add("apns-id")
        authority = constants.add(":authority", "localhost")
        encoder = HPACKEncoder(constants: constants.count, blockBytesMax: 4096)
        self.constants = constants
        collector = HeaderCollector()
        server = ServerSession(requests: collector, streamLimit: 100)
        try exchange()
    }

    deinit {
        streams.deallocate()
        buffer.deallocate()
    }

    /// Sends one request with what `compose` adds to the pseudo headers; what the server read.
    mutating func exchange(
        _ compose: (inout HPACKEncoder, borrowing HeaderConstants) -> Void
    ) throws -> [String] {
        encoder.begin()
        // POST, https and the path "/" of the static table.
        for index in [3, 7, 4] { encoder.append(staticIndex: index) }
        encoder.append(authority, of: constants)
        let pseudoBytes = encoder.bytes.count
        compose(&encoder, constants)
        blockBytes = encoder.bytes.count - pseudoBytes
        streams.initialize(to: ClientStream(tag: 0, body: nil, bodyBytes: 0))
        let count = try client.submit(encoder.bytes, stream: streams, into: buffer)
        try server.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        server.reset(stream: streams.pointee.id, errorCode: 0)
        try exchange()
        client.forgetEnds()
        defer { collector.headers = [] }
        return Array(collector.headers.dropFirst(4))
    }

    /// As if SETTINGS had come; the server's decoder allows more than it is sent.
    mutating func shrinkTable(to bytes: UInt32) { encoder.tableLimitChanged(to: bytes) }

    private mutating func exchange() throws {
        while client.wantsToWrite || server.wantsToWrite {
            let up = try client.serialise(into: buffer)
            try server.receive(UnsafeRawBufferPointer(rebasing: buffer[..<up]))
            let down = try server.serialise(into: buffer)
            try client.receive(UnsafeRawBufferPointer(rebasing: buffer[..<down]))
        }
    }
}

private final class HeaderCollector: ServerRequests {
    var headers: [String] = []

    func requestBegan(stream: Int32) -> Int? { 0 }

    func headersReceived(_ request: Int, _ fields: borrowing HeaderBlock) {
        for index in 0..<fields.count {
            let name = String(decoding: fields.name(index), as: UTF8.self)
            headers.append("\(name): \(String(decoding: fields.value(index), as: UTF8.self))")
        }
    }

    func bodyReceived(_ request: Int, _ bytes: UnsafeRawBufferPointer) {}
    func requestEnded(_ request: Int) {}
    func requestClosed(_ request: Int, errorCode: UInt32) {}
}
