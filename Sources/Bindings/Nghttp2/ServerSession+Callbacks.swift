// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// nghttp2's callbacks for the server. A stream's user data is its request's number plus one, so
/// that nil stands for a stream that was refused.
///
/// SAFETY: the context outlives the session, and all run on the thread that calls into it.
enum ServerCallbacks {
    private typealias Context = UnsafeMutablePointer<ServerContext>

    static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)
    private static let endStream = UInt8(NGHTTP2_FLAG_END_STREAM.rawValue)

    static func makeSession(_ context: UnsafeMutablePointer<ServerContext>) -> OpaquePointer {
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
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBeginHeaders)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onStreamClose)
        // Closed streams are remembered for the priority tree only, which nobody uses.
        nghttp2_option_set_no_closed_streams(options, 1)
        // Debian's 1.52 carries the guard against rapid resets, 1000 and then 33 a second. libcurl
        // 7.88 resets each stream that it has finished, so the guard would end its connections.
        nghttp2_option_set_stream_reset_rate_limit(options, 1 << 40, 1 << 40)
        let code = nghttp2_session_server_new2(&session, callbacks, context, options)
        guard code == 0, let session else {
            preconditionFailure("nghttp2_session_server_new2: \(code)")
        }
        return session
    }

    private static let onBeginHeaders: nghttp2_on_begin_headers_callback = { session, frame, user in
        let context = context(user)
        let stream = frame!.pointee.hd.stream_id
        // Trailers begin a block too; they say nothing that APNs listens to.
        guard frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST,
            let request = context.pointee.requests.requestBegan(stream: stream)
        else {
            if frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
                nghttp2_submit_rst_stream(
                    session, noFlags, stream, UInt32(NGHTTP2_REFUSED_STREAM.rawValue))
            }
            context.pointee.beginBlock(-1)
            return 0
        }
        let mark = UnsafeMutableRawPointer(bitPattern: request &+ 1)
        nghttp2_session_set_stream_user_data(session, stream, mark)
        context.pointee.beginBlock(request)
        return 0
    }

    private static let onHeader: nghttp2_on_header_callback = {
        session, frame, name, nameBytes, value, valueBytes, _, user in
        let context = context(user)
        guard context.pointee.current >= 0 else { return 0 }
        let kept = context.pointee.append(
            UnsafeBufferPointer(start: name, count: nameBytes),
            UnsafeBufferPointer(start: value, count: valueBytes))
        // Resets the stream with INTERNAL_ERROR and goes on reading the block.
        return kept ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }

    private static let onFrame: nghttp2_on_frame_recv_callback = { session, frame, user in
        let header = frame!.pointee.hd
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            let context = context(user)
            if context.pointee.current >= 0 {
                let current = context.pointee.current
                context.pointee.current = -1
                let block = context.pointee.block
                context.pointee.requests.headersReceived(current, block)
            }
            ended(session, header, user)
        case NGHTTP2_DATA.rawValue: ended(session, header, user)
        default: break
        }
        return 0
    }

    private static func ended(
        _ session: OpaquePointer?, _ header: nghttp2_frame_hd, _ user: UnsafeMutableRawPointer?
    ) {
        guard header.flags & endStream != 0, let request = request(session, header.stream_id)
        else { return }
        context(user).pointee.requests.requestEnded(request)
    }

    private static let onData: nghttp2_on_data_chunk_recv_callback = {
        session, _, stream, bytes, count, user in
        guard let request = request(session, stream) else { return 0 }
        context(user).pointee.requests.bodyReceived(
            request, UnsafeRawBufferPointer(start: bytes, count: count))
        return 0
    }

    private static let onStreamClose: nghttp2_on_stream_close_callback = {
        session, stream, errorCode, user in
        let context = context(user)
        if !context.pointee.bodies.isEmpty { context.pointee.bodies[stream] = nil }
        guard let request = request(session, stream) else { return 0 }
        context.pointee.requests.requestClosed(request, errorCode: errorCode)
        return 0
    }

    static let readBody: nghttp2_data_source_read_callback = {
        _, stream, buffer, room, flags, _, user in
        let context = context(user)
        guard let body = context.pointee.bodies[stream] else {
            return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
        }
        let count = min(body.bytes.count - body.sent, room)
        body.bytes.withUnsafeBufferPointer { source in
            buffer!.update(from: source.baseAddress! + body.sent, count: count)
        }
        if body.sent + count == body.bytes.count {
            flags!.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        }
        context.pointee.bodies[stream]?.sent += count
        return count
    }

    private static func context(_ user: UnsafeMutableRawPointer?) -> Context {
        user!.assumingMemoryBound(to: ServerContext.self)
    }

    private static func request(_ session: OpaquePointer?, _ stream: Int32) -> Int? {
        let mark = nghttp2_session_get_stream_user_data(session, stream)
        let number = Int(bitPattern: mark)
        return number == 0 ? nil : number &- 1
    }
}
