// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Nghttp2
internal import Simdjson

/// A whole connection's bytes from a server, after requests went out. The input: how many requests
/// (a byte), how many bytes come at once (a byte), what the server sends.
///
/// Every request ends once at most, and whatever a server says, what is kept of it is bounded.
enum AnswersTarget {
    private static let requestsMax = 64

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        var client = FuzzClient(requestsMax: Int(input.byte()) % requestsMax)
        let chunkBytes = 1 + Int(input.byte()) * 16
        try client.send()
        while !input.rest.isEmpty, !client.hasFailed {
            try client.receive(ExactBytes(input.bytes(chunkBytes)))
            try client.send()
        }
    }
}

/// What a delivery loop does with a session, without its timers.
private struct FuzzClient: ~Copyable {
    private enum Request { case open, ended }

    private var session = ClientSession()
    private var encoder: HPACKEncoder
    private let constants: HeaderConstants
    private var parser = JSONParser(bytesMax: 1 << 10)
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private let streams: UnsafeMutablePointer<ClientStream>
    private let body: ExactBytes
    private let requestsMax: Int
    private var requests: [Request] = []
    /// As at the start of a connection, until SETTINGS says more.
    private var streamLimit = 1
    private var isLeaving = false
    private(set) var hasFailed = false

    init(requestsMax: Int) {
        self.requestsMax = requestsMax
        constants = HeaderConstants()
        encoder = HPACKEncoder(constants: 0, blockBytesMax: 256)
        streams = .allocate(capacity: max(1, requestsMax))
        body = ExactBytes(#"{"aps":{"content-changed":true}}"#.utf8)
    }

    deinit {
        streams.deallocate()
        buffer.deallocate()
    }

    /// As many requests as the server allows now.
    mutating func send() throws {
        try serialise()
        while !hasFailed, !isLeaving, !session.isFinished, requests.count < requestsMax,
            requests.count(where: { $0 == .open }) < streamLimit
        {
            let number = requests.count
            let stream = streams + number
            stream.initialize(
                to: ClientStream(
                    tag: UInt32(number), body: body.lent.bindMemory(to: UInt8.self).baseAddress,
                    bodyBytes: body.lent.count))
            encoder.begin()
            // POST, https and the path "/" of the static table.
            for index in [3, 7, 4] { encoder.append(staticIndex: index) }
            do throws(HTTP2Error) {
                _ = try session.submit(encoder.bytes, stream: stream, into: buffer)
                requests.append(.open)
            } catch { try failed(error) }
            try takeEnds()
        }
    }

    mutating func receive(_ bytes: ExactBytes) throws {
        do throws(HTTP2Error) { try session.receive(bytes.lent) } catch { try failed(error) }
        if !hasFailed { try serialise() }
        try takeEnds()
        try takeFacts()
    }

    private mutating func serialise() throws {
        do throws(HTTP2Error) {
            while try session.serialise(into: buffer) > 0 {}
        } catch { try failed(error) }
        try takeEnds()
    }

    private mutating func failed(_ error: HTTP2Error) throws {
        hasFailed = true
        try promiseLine(error.description)
    }

    private mutating func takeEnds() throws {
        let ends = Array(session.ends)
        session.forgetEnds()
        for end in ends {
            let number = end.stream - streams
            try promise(requests.indices.contains(number), "the end of a request of nobody")
            try promise(requests[number] == .open, "a request that ends twice")
            requests[number] = .ended
            let stream = end.stream.pointee
            try promise(stream.tag == UInt32(number), "the end of another request")
            try promise(
                stream.status == 0 || (200...599).contains(stream.status),
                "status \(stream.status)")
            try promise(stream.status != 0 || !stream.isAnswered, "an answer without a status")
            try promise(
                stream.retryAfterSeconds <= ClientStream.retryAfterMax, "a long retry-after")
            try session.withAnswerBody(of: end.stream) { body in
                Result { try AnswerBodyPromises.check(UnsafeRawBufferPointer(body), &parser) }
            }.get()
        }
    }

    private mutating func takeFacts() throws {
        if session.takeSettings() {
            streamLimit = Int(session.announcedStreamLimit)
            if let least = session.takeLeastTableLimit() {
                encoder.tableLimitChanged(to: least)
            }
            encoder.tableLimitChanged(to: session.headerTableLimit)
        }
        _ = session.takePingAnswer()
        guard let goAway = session.takeGoAway() else { return }
        isLeaving = true
        try promise(goAway.debugData.count <= 512, "\(goAway.debugData.count) bytes of debug data")
        try goAway.debugData.withUnsafeBytes { try AnswerBodyPromises.check($0, &parser) }
    }
}

/// The body of an answer. The input: the body.
enum AnswerBodyPromises {
    static func check(_ input: UnsafeRawBufferPointer) throws {
        var parser = JSONParser(bytesMax: 1 << 10)
        let bytes = ExactBytes(input)
        try check(bytes.lent, &parser)
    }

    static func check(_ bytes: UnsafeRawBufferPointer, _ parser: inout JSONParser) throws {
        let body = AnswerBody(bytes, parser: &parser)
        try promise(
            (body.reason == .unknown) == (body.unknownReason != nil), "a word that is known or not")
        // It is logged, and becomes a dead letter's reason.
        if let word = body.unknownReason { try promiseLine(word, bytesMax: 1024) }
    }
}
