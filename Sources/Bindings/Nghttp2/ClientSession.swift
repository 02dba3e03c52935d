// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// The client's side of one HTTP/2 connection: bytes in, facts out; requests in, bytes out. It
/// does no I/O, calls nobody back and allocates nothing of its own per request.
///
/// After each `receive` and each `serialise` the caller reads `ends` and calls `forgetEnds()`.
package struct ClientSession: ~Copyable {
    private let session: OpaquePointer
    private let context: UnsafeMutablePointer<ClientContext>

    /// The largest chunk that `serialise` moves at once: a frame header and 16 KiB, RFC 9113's
    /// smallest and everyone's usual SETTINGS_MAX_FRAME_SIZE.
    package static let chunkBytesMax = 9 + 16_384

    /// Begins with the preface and SETTINGS (no server push), which wait to be serialised.
    package init() {
        context = .allocate(capacity: 1)
        context.initialize(to: ClientContext())
        session = ClientCallbacks.makeSession(context)
        var settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
        ]
        let code = nghttp2_submit_settings(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count)
        precondition(code == 0, "nghttp2_submit_settings: \(code)")
    }

    deinit {
        nghttp2_session_del(session)
        context.pointee.free()
        context.deinitialize(count: 1)
        context.deallocate()
    }

    // MARK: Requests

    /// Opens a stream with a header block of the caller's own HPACK encoder, and serialises it
    /// into `buffer`, behind what else waits. Returns how many bytes.
    ///
    /// nghttp2 is told of one header only, which its encoder writes as one byte of the static
    /// table, so that its dynamic table stays empty; the block in its HEADERS frame is exchanged
    /// for `block`. The peer thus sees one encoder, the caller's.
    ///
    /// After an error the session can only be ended; `stream` is then not in it.
    ///
    /// - Parameters:
    ///   - block: at most 16,384 bytes, so that one frame holds it.
    ///   - buffer: must have room for two chunks, and nothing may wait to be serialised.
    package mutating func submit(
        _ block: UnsafeRawBufferPointer, stream: UnsafeMutablePointer<ClientStream>,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(HTTP2Error) -> Int {
        var provider = nghttp2_data_provider()
        provider.source.ptr = UnsafeMutableRawPointer(stream)
        provider.read_callback = ClientCallbacks.readBody
        let id = nghttp2_submit_request(session, nil, context.pointee.method, 1, &provider, stream)
        guard id > 0 else { throw HTTP2Error(code: id) }
        stream.pointee.id = id
        let written = try serialise(into: buffer, exchanging: block)
        guard written.hasExchanged else {
            // nghttp2 counts streams otherwise than the caller and holds the request back; sent
            // later, it would go out without its headers.
            abandon(stream)
            context.pointee.withdraw(stream)
            throw HTTP2Error(code: Int32(NGHTTP2_ERR_START_STREAM_NOT_ALLOWED.rawValue))
        }
        return written.bytes
    }

    /// Cancels a stream whose request is given up. Its end is not reported and `stream` may be
    /// reused at once.
    package mutating func abandon(_ stream: UnsafeMutablePointer<ClientStream>) {
        nghttp2_session_set_stream_user_data(session, stream.pointee.id, nil)
        context.pointee.forget(stream)
        nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.pointee.id,
            UInt32(NGHTTP2_CANCEL.rawValue))
    }

    /// Sends a PING; `takePingAnswer()` tells when it has been answered.
    package mutating func ping() {
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    }

    /// Tells the server that this client is leaving.
    package mutating func goAway() {
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, UInt32(NGHTTP2_NO_ERROR.rawValue), nil,
            0)
    }

    // MARK: Bytes

    /// Moves what waits to be sent to `buffer`, frame by frame, while a whole chunk is sure to
    /// fit, and returns how many bytes.
    package mutating func serialise(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(HTTP2Error) -> Int {
        try serialise(into: buffer, exchanging: nil).bytes
    }

    private mutating func serialise(
        into buffer: UnsafeMutableRawBufferPointer, exchanging block: UnsafeRawBufferPointer?
    ) throws(HTTP2Error) -> (bytes: Int, hasExchanged: Bool) {
        var block = block
        var used = 0
        while buffer.count - used >= Self.chunkBytesMax {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &chunk)
            guard count >= 0 else { throw HTTP2Error(code: Int32(count)) }
            guard count > 0, let chunk else { break }
            let target = buffer.baseAddress! + used
            if let headers = block, chunk[3] == UInt8(NGHTTP2_HEADERS.rawValue) {
                used += Self.write(headers, framedAs: chunk, to: target)
                block = nil
            } else {
                target.copyMemory(from: chunk, byteCount: count)
                used += count
            }
        }
        return (used, block == nil)
    }

    /// Writes a frame with the type, flags and stream of `frame` and a payload of its own.
    private static func write(
        _ payload: UnsafeRawBufferPointer, framedAs frame: UnsafePointer<UInt8>,
        to target: UnsafeMutableRawPointer
    ) -> Int {
        precondition(payload.count <= 16_384, "the header block fits into one frame")
        // RFC 9113 §4.1: 24 bits of length, then 6 bytes that stay.
        target.copyMemory(from: frame, byteCount: 9)
        target.storeBytes(of: 0, toByteOffset: 0, as: UInt8.self)
        target.storeBytes(of: UInt8(payload.count >> 8), toByteOffset: 1, as: UInt8.self)
        target.storeBytes(of: UInt8(payload.count & 255), toByteOffset: 2, as: UInt8.self)
        (target + 9).copyMemory(from: payload.baseAddress!, byteCount: payload.count)
        return 9 + payload.count
    }

    package mutating func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTP2Error) {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let count = nghttp2_session_mem_recv(session, start, bytes.count)
        guard count >= 0 else { throw HTTP2Error(code: Int32(count)) }
    }

    /// Whether something waits to be serialised.
    package var wantsToWrite: Bool { nghttp2_session_want_write(session) != 0 }

    /// Whether neither side has anything more to say: GOAWAY was exchanged and no stream is open,
    /// or the peer broke the protocol, has been told so by GOAWAY, and is not listened to any more.
    package var isFinished: Bool {
        nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    // MARK: Facts

    /// The streams that ended since `forgetEnds()`.
    package var ends: UnsafeBufferPointer<StreamEnd> {
        UnsafeBufferPointer(start: context.pointee.ends, count: context.pointee.endCount)
    }

    package mutating func forgetEnds() { context.pointee.endCount = 0 }

    /// Whether SETTINGS (not its acknowledgement) has come since the last call.
    package mutating func takeSettings() -> Bool {
        defer { context.pointee.settingsArrived = false }
        return context.pointee.settingsArrived
    }

    /// SETTINGS_MAX_CONCURRENT_STREAMS as last announced; the largest number when it never was.
    package var announcedStreamLimit: UInt32 {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    }

    /// SETTINGS_HEADER_TABLE_SIZE, for the caller's HPACK encoder.
    package var headerTableLimit: UInt32 {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_HEADER_TABLE_SIZE)
    }

    /// The least SETTINGS_HEADER_TABLE_SIZE since the last call, nil if none has come. The peer has
    /// emptied its table down to it, even if the size in force is larger again (RFC 7541, section
    /// 4.2), so the encoder must be told of it first.
    package mutating func takeLeastTableLimit() -> UInt32? {
        defer { context.pointee.leastTableLimit = nil }
        return context.pointee.leastTableLimit
    }

    package mutating func takePingAnswer() -> Bool {
        defer { context.pointee.pingAnswered = false }
        return context.pointee.pingAnswered
    }

    package mutating func takeGoAway() -> GoAway? {
        defer { context.pointee.goAway = nil }
        return context.pointee.goAway
    }

    // MARK: Answer bodies

    /// Lends the kept start of an answer's body, empty if there was none, and lets go of it.
    package mutating func withAnswerBody<R>(
        of stream: UnsafeMutablePointer<ClientStream>, _ read: (UnsafeBufferPointer<UInt8>) -> R
    ) -> R {
        guard stream.pointee.answerBody >= 0 else {
            return read(UnsafeBufferPointer(start: nil, count: 0))
        }
        defer { context.pointee.bodies.release(&stream.pointee.answerBody) }
        return read(
            UnsafeBufferPointer(
                start: context.pointee.bodies.address(stream.pointee.answerBody),
                count: Int(stream.pointee.answerBytes)))
    }
}

extension HTTP2Error {
    init(code: Int32) {
        self.init(code: code, text: String(cString: nghttp2_strerror(code)))
    }
}
