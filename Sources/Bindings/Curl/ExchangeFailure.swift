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
        /// The time was over before the connection was there: TCP's, or the proxy's tunnel.
        case connectTimeout
        /// TCP was there, and the time was over before TLS was.
        case handshakeTimeout
        /// The connection was there, and no whole answer came in time.
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
        /// What came is no HTTP, or none that was asked for.
        case notHTTP
        case tooLarge
        /// Anything else: memory, or a URL that is none.
        case other
    }

    package enum CertificateFault: Hashable, Sendable {
        case expired, notYetValid
        /// Not signed by an authority that is trusted here.
        case untrusted
        /// It does not bear the name that was asked for.
        case otherName

        /// From OpenSSL's verifyResult on the chain, whose numbers are fixed. The name is libcurl's own
        /// to compare, before it writes a good verifyResult over the 1 that it began with.
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
    /// libcurl's words, the same for the same failure: no measured times, no error numbers. They
    /// quote no secret. Of a handshake they are OpenSSL's.
    package let text: String

    init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }

    init(
        _ code: CURLcode, _ easy: UnsafeMutableRawPointer, _ errorText: String, isTunnelled: Bool
    ) {
        kind = Self.kind(code, easy, isTunnelled: isTunnelled)
        switch kind {
        // libcurl's longer text says how many milliseconds it took.
        case .refused, .connectTimeout, .handshakeTimeout, .answerTimeout:
            text = CurlCode(code).description
        default:
            text = errorText.isEmpty ? CurlCode(code).description : CurlCode.words(of: errorText)
        }
    }

    private static func kind(
        _ code: CURLcode, _ easy: UnsafeMutableRawPointer, isTunnelled: Bool
    ) -> Kind {
        // 200 is a tunnel that was made.
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
            // A socket that is connected has a port of ours; with a tunnel it is the proxy's.
            let isOpen = TransferOptions.long(easy, CURLINFO_LOCAL_PORT) > 0
            return isOpen && !isTunnelled ? .handshakeTimeout : .connectTimeout
        case CURLE_PEER_FAILED_VERIFICATION:
            return .certificate(
                CertificateFault(
                    verifyResult: TransferOptions.long(easy, CURLINFO_SSL_VERIFYRESULT)))
        case CURLE_SSL_CACERT_BADFILE: return .unreadableCAFile
        case CURLE_SSL_CONNECT_ERROR: return .handshake
        // "Received HTTP/0.9 when not allowed" is what libcurl says of anything without a status line.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return .notHTTP
        default:
            return CurlCode(code).cause == .connectionLost || code == CURLE_PROXY
                ? .lost : .other
        }
    }

    /// The request could go out: libcurl takes the time before that for this one.
    private static func hasConnected(_ easy: UnsafeMutableRawPointer) -> Bool {
        var microseconds: curl_off_t = 0
        TransferOptions.check(
            CCurl_getOffset(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds))
        return microseconds > 0
    }
}
