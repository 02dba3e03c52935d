// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// How libcurl says that a transfer ended: one of its `CURLE_` codes.
package struct CurlCode: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    init(_ code: CURLcode) { rawValue = code.rawValue }

    package static let ok = CurlCode(CURLE_OK)
    /// The file of trusted roots cannot be read, or holds none.
    package static let unreadableCAFile = CurlCode(CURLE_SSL_CACERT_BADFILE)

    /// libcurl's text for the code.
    package var description: String {
        String(cString: curl_easy_strerror(CURLcode(rawValue: rawValue)))
    }

    /// The words in libcurl's text about a failure. It passes OpenSSL's errors on as they are:
    /// `error:0A00010B:SSL routines::wrong version number` is "wrong version number".
    static func words(of text: String) -> String {
        guard let error = text.firstMatch(of: #/error:[0-9A-Fa-f]+:[^:]*:[^:]*:(.+)/#) else {
            return text
        }
        return String(error.output.1)
    }

    /// What happened, for those who must act on it. None of these says whether the request was
    /// sent: `EasyHandle.wasDispatched` does.
    package enum Cause: Hashable, Sendable {
        case none
        /// The deadline of the connect or of the request has passed.
        case timeout
        /// No address, no TCP connection, or no TLS session.
        case connect
        /// The server's certificate was refused.
        case certificate
        /// The connection broke.
        case connectionLost
        /// The server reset this one stream; the connection goes on.
        case streamReset
        /// Anything else: memory, a wrong option, or a callback that said no.
        case other
    }

    package var cause: Cause {
        switch CURLcode(rawValue: rawValue) {
        case CURLE_OK: .none
        case CURLE_OPERATION_TIMEDOUT: .timeout
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR, CURLE_PROXY:
            .connect
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE: .certificate
        // 18 is what most requests of a broken HTTP/2 connection end with, 16 what one does that
        // a GOAWAY left out.
        case CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_GOT_NOTHING, CURLE_SEND_ERROR,
            CURLE_RECV_ERROR, CURLE_SSL_SHUTDOWN_FAILED:
            .connectionLost
        case CURLE_HTTP2_STREAM: .streamReset
        default: .other
        }
    }
}

/// The libcurl that this process has loaded.
package enum CurlLibrary {
    /// The version line, as in `libcurl/7.88.1 OpenSSL/3.0.17 … nghttp2/1.52.0`.
    package static var version: String { String(cString: curl_version()) }

    /// The version of the header that this program was compiled against, such as "7.88.1".
    package static var compiledVersion: String { LIBCURL_VERSION }

    /// False for a libcurl that was built without nghttp2: it cannot talk to APNs.
    package static var speaksHTTP2: Bool { CCurl_features() & CURL_VERSION_HTTP2 != 0 }

    /// Sets libcurl up, once per process and before its first handle.
    static func initialise() { _ = initialised }

    private static let initialised: Void = {
        let code = curl_global_init(Int(CURL_GLOBAL_ALL))
        precondition(code == CURLE_OK, "curl_global_init: \(CurlCode(code))")
    }()
}
