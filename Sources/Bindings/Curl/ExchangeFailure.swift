// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CCurl

/// Why an `HTTPExchange` has no answer.
package struct ExchangeFailure: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// The host's name has no address, or the proxy's has none.
        case unresolvedHost, unresolvedProxy
        /// Nobody listens: at the proxy's address where there is one, else at the host's.
        case refused
        /// The timeout passed before there was a TCP connection or, with a proxy, a tunnel.
        case connectTimeout
        /// The timeout passed after TCP had connected and before there was a TLS session.
        case handshakeTimeout
        /// The timeout passed after the connection was made and before the whole answer came.
        case answerTimeout
        case certificate(CertificateFault)
        /// The file of trusted roots cannot be read.
        case unreadableCAFile
        /// No TLS session came about, for another reason than the certificate.
        case handshake
        /// The proxy made no tunnel, and answered with this status.
        case proxyStatus(UInt16)
        /// The connection broke, the proxy's before it had answered included.
        case lost
        /// The answer is not HTTP, or not a kind of it that was asked for.
        case notHTTP
        case tooLarge
        /// Anything else: memory, or a URL that is none.
        case other

        /// Whether the server was not reached, so that it was not asked.
        package var isBeforeRequest: Bool {
            switch self {
            case .unresolvedHost, .unresolvedProxy, .refused, .connectTimeout, .handshakeTimeout,
                .certificate, .unreadableCAFile, .handshake, .proxyStatus:
                true
            case .answerTimeout, .lost, .notHTTP, .tooLarge, .other: false
            }
        }
    }

    package enum CertificateFault: Hashable, Sendable {
        case expired, notYetValid
        /// Not signed by an authority that is trusted here.
        case untrusted
        /// It does not bear the name that was asked for.
        case otherName

        /// Interprets OpenSSL's result of verifying the chain, whose numbers are fixed. libcurl
        /// compares the name itself, before it replaces the 1 that it began with by a good result:
        /// 0 and 1 mean another name.
        package init(verifyResult: Int) {
            self =
                switch verifyResult {
                case 0, 1, 62, 64: .otherName
                case 9: .notYetValid
                case 10: .expired
                default: .untrusted
                }
        }
    }

    package let kind: Kind
    /// libcurl's text, or OpenSSL's for a handshake. It is the same for the same failure, without
    /// measured times and error numbers, and quotes no secret.
    package let text: String

    init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }

    /// - Parameter wasOpen: whether a TCP connection came about, the proxy's if there is one.
    init(
        _ code: CURLcode, _ easy: UnsafeMutableRawPointer, _ errorText: String, isTunnelled: Bool,
        wasOpen: Bool
    ) {
        kind = Self.kind(code, easy, isTunnelled: isTunnelled, wasOpen: wasOpen)
        switch kind {
        // libcurl's longer text says how many milliseconds it took.
        case .refused, .connectTimeout, .handshakeTimeout, .answerTimeout:
            text = CurlCode(code).description
        default:
            text = errorText.isEmpty ? CurlCode(code).description : CurlCode.words(of: errorText)
        }
    }

    private static func kind(
        _ code: CURLcode, _ easy: UnsafeMutableRawPointer, isTunnelled: Bool, wasOpen: Bool
    ) -> Kind {
        // 200 means that the tunnel was made.
        let connectStatus = TransferOptions.long(easy, CURLINFO_HTTP_CONNECTCODE)
        if isTunnelled, connectStatus != 0, !(200..<300).contains(connectStatus) {
            return .proxyStatus(UInt16(clamping: connectStatus))
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: return .unresolvedHost
        case CURLE_COULDNT_RESOLVE_PROXY: return .unresolvedProxy
        case CURLE_COULDNT_CONNECT: return .refused
        case CURLE_OPERATION_TIMEDOUT:
            if hasConnected(easy) { return .answerTimeout }
            // With a tunnel the connection is the proxy's.
            return wasOpen && !isTunnelled ? .handshakeTimeout : .connectTimeout
        case CURLE_PEER_FAILED_VERIFICATION:
            return .certificate(
                CertificateFault(
                    verifyResult: TransferOptions.long(easy, CURLINFO_SSL_VERIFYRESULT)))
        case CURLE_SSL_CACERT_BADFILE: return .unreadableCAFile
        case CURLE_SSL_CONNECT_ERROR: return .handshake
        // "Received HTTP/0.9 when not allowed" is what libcurl says of anything without a status
        // line.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return .notHTTP
        default:
            return CurlCode(code).cause == .connectionLost || code == CURLE_PROXY
                ? .lost : .other
        }
    }

    /// Whether the request could be sent: libcurl then knows the time that passed before that.
    private static func hasConnected(_ easy: UnsafeMutableRawPointer) -> Bool {
        var microseconds: curl_off_t = 0
        TransferOptions.check(
            CCurl_getOffset(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds))
        return microseconds > 0
    }
}
