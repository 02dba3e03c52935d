// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2
internal import Glibc

/// nghttp2's callbacks for the client: each notes a fact in the session's `ClientContext`.
///
/// SAFETY: the context and every stream's `ClientStream` outlive the session, or are taken out of
/// it first (`abandon`); all run on the thread that calls into the session.
enum ClientCallbacks {
    private typealias Context = UnsafeMutablePointer<ClientContext>

    static func makeSession(_ context: UnsafeMutablePointer<ClientContext>) -> OpaquePointer {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        var session: OpaquePointer?
        // These fail only for want of memory.
        precondition(nghttp2_session_callbacks_new(&callbacks) == 0, "out of memory")
        precondition(nghttp2_option_new(&options) == 0, "out of memory")
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(options)
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
        // Until SETTINGS says more; nghttp2's own guess is 100.
        nghttp2_option_set_peer_max_concurrent_streams(options, 1)
        let code = nghttp2_session_client_new2(&session, callbacks, context, options)
        precondition(code == 0, "nghttp2_session_client_new2: \(code)")
        return session!
    }

    static let readBody: nghttp2_data_source_read_callback = {
        _, _, buffer, room, flags, source, _ in
        let stream = source!.pointee.ptr.assumingMemoryBound(to: ClientStream.self)
        let sent = stream.pointee.bodySent
        let count = min(stream.pointee.bodyBytes &- sent, room)
        if count > 0 {
            buffer!.update(from: stream.pointee.body! + sent, count: count)
            stream.pointee.bodySent = sent &+ count
        }
        if stream.pointee.bodySent == stream.pointee.bodyBytes {
            flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        }
        return count
    }

    private static let onHeader: nghttp2_on_header_callback = {
        _, _, name, nameBytes, value, valueBytes, _, user in
        // ":status" is the only name of seven bytes whose second is "s", with three digits.
        if nameBytes == 11 { retryAfter(name!, value!, valueBytes, context(user)) }
        guard nameBytes == 7, name![0] == 0x3A, name![1] == 0x73, valueBytes == 3 else { return 0 }
        var status: UInt16 = 0
        for index in 0..<3 { status = status &* 10 &+ UInt16(value![index] &- 0x30) }
        context(user).pointee.statusRead = status
        return 0
    }

    /// Reads a `retry-after` of whole seconds; a date is ignored.
    private static func retryAfter(
        _ name: UnsafePointer<UInt8>, _ value: UnsafePointer<UInt8>, _ valueBytes: Int,
        _ context: Context
    ) {
        guard memcmp(name, "retry-after", 11) == 0, (1...9).contains(valueBytes) else { return }
        var seconds = 0
        for index in 0..<valueBytes {
            guard (0x30...0x39).contains(value[index]) else { return }
            seconds = seconds &* 10 &+ Int(value[index] &- 0x30)
        }
        context.pointee.retryAfterRead = UInt16(min(seconds, ClientStream.retryAfterMax))
    }

    private static let onFrame: nghttp2_on_frame_recv_callback = { session, frame, user in
        let context = context(user)
        let header = frame!.pointee.hd
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            headersReceived(session!, header, context)
        case NGHTTP2_DATA.rawValue:
            if header.flags & endStream != 0 {
                answered(session!, stream(session!, header.stream_id), header.stream_id)
            }
        case NGHTTP2_SETTINGS.rawValue:
            if header.flags & acknowledgement == 0 {
                settingsReceived(frame!.pointee.settings, context)
            }
        case NGHTTP2_PING.rawValue:
            if header.flags & acknowledgement != 0 { context.pointee.pingAnswered = true }
        case NGHTTP2_GOAWAY.rawValue:
            let frame = frame!.pointee.goaway
            let debug = UnsafeBufferPointer(
                start: frame.opaque_data, count: min(frame.opaque_data_len, GoAway.debugBytesMax))
            context.pointee.goAway = GoAway(
                lastStreamID: frame.last_stream_id, errorCode: frame.error_code,
                debugData: Array(debug))
        default: break
        }
        return 0
    }

    /// Keeps the least table size: where a frame names several, nghttp2 keeps only the least and
    /// the last.
    private static func settingsReceived(_ frame: nghttp2_settings, _ context: Context) {
        context.pointee.settingsArrived = true
        for entry in UnsafeBufferPointer(start: frame.iv, count: frame.niv)
        where entry.settings_id == Int32(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE.rawValue) {
            let least = context.pointee.leastTableLimit ?? .max
            context.pointee.leastTableLimit = min(least, entry.value)
        }
    }

    private static func headersReceived(
        _ session: OpaquePointer, _ header: nghttp2_frame_hd, _ context: Context
    ) {
        let status = context.pointee.statusRead
        let retryAfter = context.pointee.retryAfterRead
        context.pointee.statusRead = 0
        context.pointee.retryAfterRead = 0
        let stream = stream(session, header.stream_id)
        context.pointee.recentID = header.stream_id
        context.pointee.recentStream = stream
        // Neither a 1xx nor a trailer is the answer, and 043, which nghttp2 passes, is no status.
        if (200...599).contains(status) {
            stream?.pointee.status = status
            stream?.pointee.retryAfterSeconds = retryAfter
        }
        if header.flags & endStream != 0 { answered(session, stream, header.stream_id) }
    }

    /// The answer is complete, if it was one. A server may answer before it has all of the request;
    /// the rest is then not sent.
    private static func answered(
        _ session: OpaquePointer, _ stream: UnsafeMutablePointer<ClientStream>?, _ id: Int32
    ) {
        guard let stream else { return }
        stream.pointee.isAnswered = stream.pointee.status != 0
        if stream.pointee.bodySent < stream.pointee.bodyBytes {
            nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, UInt32(NGHTTP2_CANCEL.rawValue))
        }
    }

    private static let onData: nghttp2_on_data_chunk_recv_callback = {
        session, _, id, bytes, count, user in
        guard let stream = stream(session!, id) else { return 0 }
        context(user).pointee.bodies.append(
            UnsafeBufferPointer(start: bytes, count: count), to: stream)
        return 0
    }

    private static let onStreamClose: nghttp2_on_stream_close_callback = {
        session, id, errorCode, user in
        let context = context(user)
        let known = context.pointee.recentID == id
        let ended = known ? context.pointee.recentStream : stream(session!, id)
        if known { context.pointee.recentID = 0 }
        if let ended {
            context.pointee.append(StreamEnd(stream: ended, errorCode: errorCode))
        }
        return 0
    }

    private static let endStream = UInt8(NGHTTP2_FLAG_END_STREAM.rawValue)
    private static let acknowledgement = UInt8(NGHTTP2_FLAG_ACK.rawValue)

    private static func context(_ user: UnsafeMutableRawPointer?) -> Context {
        user!.assumingMemoryBound(to: ClientContext.self)
    }

    private static func stream(
        _ session: OpaquePointer, _ id: Int32
    ) -> UnsafeMutablePointer<ClientStream>? {
        nghttp2_session_get_stream_user_data(session, id)?
            .assumingMemoryBound(to: ClientStream.self)
    }
}
