// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CNghttp2

/// One request as nghttp2's callbacks see it. The caller keeps it at a fixed address from
/// `submit` until the stream's end is reported or the stream is abandoned; it is nghttp2's stream
/// user data, so that no table is searched for it.
package struct ClientStream: BitwiseCopyable {
    /// The caller's name for the request.
    package var tag: UInt32
    /// Assigned by `submit`.
    package internal(set) var id: Int32 = 0
    /// The body, lent until the stream's end.
    package var body: UnsafePointer<UInt8>?
    package var bodyBytes: Int
    var bodySent = 0
    /// The answer's `:status`; 0 while there is none.
    package internal(set) var status: UInt16 = 0
    /// The answer's `retry-after` where that is a number of seconds; at most `retryAfterMax`.
    package internal(set) var retryAfterSeconds: UInt16 = 0
    /// Whether the answer is complete: END_STREAM has arrived.
    package internal(set) var isAnswered = false
    /// The place in the session of the first bytes of the answer's body; negative for none.
    var answerBody: Int32 = -1
    var answerBytes: Int32 = 0

    /// The longest delay, in seconds, that `retry-after` can cause: an hour.
    package static let retryAfterMax = 3600

    package init(tag: UInt32, body: UnsafePointer<UInt8>?, bodyBytes: Int) {
        self.tag = tag
        self.body = body
        self.bodyBytes = bodyBytes
    }
}

/// The end of a stream. One of these per request, unless the stream was abandoned or the session
/// ended first.
package struct StreamEnd: BitwiseCopyable {
    package let stream: UnsafeMutablePointer<ClientStream>
    /// An error code of RFC 9113 §7; 0 for an orderly end.
    package let errorCode: UInt32

    /// Whether the stream ended with REFUSED_STREAM, from the server or because GOAWAY left the
    /// stream out: it was not processed.
    package var isRefused: Bool { errorCode == 7 }
}

/// A GOAWAY frame.
package struct GoAway: Hashable, Sendable {
    /// The highest stream that may have been processed; those above it were not.
    package let lastStreamID: Int32
    package let errorCode: UInt32
    /// At most `debugBytesMax` bytes of the debug data; APNs puts JSON there.
    package let debugData: [UInt8]

    static let debugBytesMax = 512
}

/// What nghttp2 refused to do.
package struct HTTP2Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// One of nghttp2's negative codes.
    package let code: Int32
    /// nghttp2's words.
    package let text: String

    /// The connection has used up its stream ids; a new connection has new ones.
    package var isOutOfStreams: Bool { code == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue }

    package var description: String { "HTTP/2: \(text)" }
}
