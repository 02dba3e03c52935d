// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// Serves a session's requests. Every call comes from within `ServerSession.receive` or
/// `.serialise`, on their thread; answering from within a call is allowed.
package protocol ServerRequests: AnyObject {
    /// A request's header block begins. The number returned comes back with every later fact about
    /// the request. nil refuses it with REFUSED_STREAM and nothing more is heard of it.
    func requestBegan(stream: Int32) -> Int?
    /// The header block is complete. `fields` and what it lends are gone when this returns.
    func headersReceived(_ request: Int, _ fields: borrowing HeaderBlock)
    func bodyReceived(_ request: Int, _ bytes: UnsafeRawBufferPointer)
    /// The peer has sent the whole request.
    func requestEnded(_ request: Int)
    /// The stream is gone, answered or not; its number may be given to another.
    func requestClosed(_ request: Int, errorCode: UInt32)
}

/// The server's side of one HTTP/2 connection over memory: bytes in, requests out; answers in,
/// bytes out. It does no I/O and allocates nothing of its own per request.
///
/// nghttp2 ends the whole connection when a client exceeds an acknowledged stream limit. APNs
/// refuses only the stream, so the limit is announced without nghttp2's knowledge and its holder,
/// the `ServerRequests`, enforces it by refusing.
package struct ServerSession: ~Copyable {
    private let session: OpaquePointer
    private let context: UnsafeMutablePointer<ServerContext>

    /// Begins with SETTINGS, which wait to be serialised.
    /// - Parameter requests: must outlive the session, as an owner of both does.
    /// - Parameter streamLimit: the first SETTINGS_MAX_CONCURRENT_STREAMS.
    package init(requests: any ServerRequests, streamLimit: Int) {
        context = .allocate(capacity: 1)
        context.initialize(to: ServerContext(requests: requests))
        session = ServerCallbacks.makeSession(context)
        announce(streamLimit: streamLimit, headerBytesMax: ServerContext.headerBytesMax)
    }

    deinit {
        nghttp2_session_del(session)
        context.pointee.free()
        context.deinitialize(count: 1)
        context.deallocate()
    }

    // MARK: Bytes

    /// Hands over what the peer has sent. An error means that the session is beyond use; what
    /// `serialise` still gives (a GOAWAY) should reach the peer.
    package func receive(_ bytes: UnsafeRawBufferPointer) throws(HTTP2Error) {
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let count = nghttp2_session_mem_recv(session, start, bytes.count)
        guard count >= 0 else { throw HTTP2Error(code: Int32(count)) }
    }

    /// Fills `buffer` with what waits to be sent, splitting frames where it ends, and returns how
    /// many bytes; fewer than its size when nothing more waits.
    package func serialise(
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(HTTP2Error) -> Int {
        var used = 0
        while used < buffer.count {
            if context.pointee.chunk.isEmpty {
                var chunk: UnsafePointer<UInt8>?
                let count = nghttp2_session_mem_send(session, &chunk)
                guard count >= 0 else { throw HTTP2Error(code: Int32(count)) }
                if count == 0 { break }
                context.pointee.take(UnsafeBufferPointer(start: chunk, count: count))
            }
            used += context.pointee.moveChunk(
                to: UnsafeMutableRawBufferPointer(rebasing: buffer[used...]))
        }
        return used
    }

    /// Whether something waits to be serialised.
    package var wantsToWrite: Bool {
        !context.pointee.chunk.isEmpty || nghttp2_session_want_write(session) != 0
    }

    /// Whether GOAWAY was sent or received, every stream has ended and everything is written.
    package var isFinished: Bool {
        !wantsToWrite && nghttp2_session_want_read(session) == 0
    }

    // MARK: Answers

    /// Answers an open stream, once. Everything is copied. An empty `body` sends HEADERS with
    /// END_STREAM and no DATA.
    package func respond(stream: Int32, _ headers: borrowing AnswerHeaders, body: [UInt8] = []) {
        guard !body.isEmpty else {
            // Fails only for want of memory: that the peer has reset the stream shows later.
            let code = nghttp2_submit_response(
                session, stream, headers.fields, headers.count, nil)
            precondition(code == 0, "nghttp2_submit_response: \(code)")
            return
        }
        context.pointee.bodies[stream] = AnswerBody(bytes: body)
        var provider = nghttp2_data_provider()
        provider.read_callback = ServerCallbacks.readBody
        let code = nghttp2_submit_response(
            session, stream, headers.fields, headers.count, &provider)
        precondition(code == 0, "nghttp2_submit_response: \(code)")
    }

    /// Ends a stream unanswered.
    package func reset(stream: Int32, errorCode: UInt32) {
        nghttp2_submit_rst_stream(session, ServerCallbacks.noFlags, stream, errorCode)
    }

    // MARK: The connection

    /// Announces a new SETTINGS_MAX_CONCURRENT_STREAMS.
    package func announce(streamLimit: Int) {
        announce(streamLimit: streamLimit, headerBytesMax: nil)
    }

    /// Sends GOAWAY. Streams above `lastStream` end at once, with REFUSED_STREAM, and count as not
    /// processed.
    package func goAway(lastStream: Int32, errorCode: UInt32, debugData: [UInt8]) {
        nghttp2_submit_goaway(
            session, ServerCallbacks.noFlags, lastStream, errorCode, debugData, debugData.count)
    }

    /// The highest stream that was handed to the `ServerRequests`.
    package var lastStream: Int32 { nghttp2_session_get_last_proc_stream_id(session) }

    private func announce(streamLimit: Int, headerBytesMax: Int?) {
        var settings = [
            nghttp2_settings_entry(
                settings_id: ServerContext.streamLimitMark, value: UInt32(clamping: streamLimit))
        ]
        if let headerBytesMax {
            settings.append(
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                    value: UInt32(headerBytesMax)))
        }
        let code = nghttp2_submit_settings(
            session, ServerCallbacks.noFlags, settings, settings.count)
        precondition(code == 0, "nghttp2_submit_settings: \(code)")
    }
}

/// The headers of one request in the order they came, lent for the length of a call.
package struct HeaderBlock: ~Copyable {
    let bytes: UnsafePointer<UInt8>
    let ends: UnsafePointer<UInt32>
    package let count: Int

    package func name(_ index: Int) -> UnsafeRawBufferPointer { part(2 &* index) }
    package func value(_ index: Int) -> UnsafeRawBufferPointer { part(2 &* index &+ 1) }

    private func part(_ index: Int) -> UnsafeRawBufferPointer {
        let start = index == 0 ? 0 : Int(ends[index &- 1])
        return UnsafeRawBufferPointer(start: bytes + start, count: Int(ends[index]) &- start)
    }
}
