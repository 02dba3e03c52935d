// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL
internal import Glibc

/// What OpenSSL, or the socket below it, said when a TLS operation failed.
package struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// OpenSSL's packed code; 0 when the failure is the socket's or our own.
    package let code: UInt
    /// What happened, in words for an operator; never OpenSSL's numbers.
    package let text: String
    /// Why the peer's certificate was refused, in OpenSSL's words; nil for any other failure.
    package let verification: String?
    /// The X509_V_ERR_… code that says why the certificate was refused; 0 for any other failure.
    package let verifyResult: Int

    package init(code: UInt = 0, text: String, verification: String? = nil, verifyResult: Int = 0) {
        self.code = code
        self.text = text
        self.verification = verification
        self.verifyResult = verifyResult
    }

    package var description: String {
        verification.map { "the certificate is refused: \($0)" } ?? text
    }

    /// What OpenSSL's short words for a failure mean to an operator; the words themselves where
    /// they say it. libcurl and librdkafka quote the same words.
    package static func sentence(of reason: String) -> String {
        switch reason {
        case "wrong version number", "http request", "https proxy request",
            "packet length too long",
            "record layer failure":
            "the server does not speak TLS on this port"
        case "unexpected eof while reading": "the peer closed the connection"
        case "unsupported protocol", "tlsv1 alert protocol version", "no protocols available":
            "the peer speaks no version of TLS that is taken here (1.2 or 1.3)"
        case "no shared cipher", "sslv3 alert handshake failure", "ssl/tls alert handshake failure":
            "the peer refuses the TLS handshake: no cipher, or no client certificate, that suits both"
        case "tlsv1 alert no application protocol", "no application protocol":
            "the server does not speak HTTP/2 (ALPN)"
        case "tlsv1 alert unknown ca", "tlsv1 alert certificate unknown",
            "sslv3 alert certificate unknown":
            "the peer does not trust the certificate that it was shown"
        case "tlsv13 alert certificate required": "the peer wants a client certificate"
        case "sslv3 alert certificate expired", "ssl/tls alert certificate expired":
            "the peer says that the certificate it was shown has expired"
        default: reason
        }
    }
}

/// OpenSSL's queue of errors: one per thread and shared by every library in the process. It is
/// cleared before a call whose result is judged and drained after a failure; otherwise the next
/// caller (libcurl, librdkafka) would read our failure as its own.
package enum ErrorQueue {
    package static func clear() { ERR_clear_error() }

    /// Empties the queue. `otherwise` is the text for a failure that queued nothing.
    package static func drain(
        otherwise: String, verification: String? = nil, verifyResult: Int = 0
    ) -> TLSError {
        let code = ERR_get_error()
        ERR_clear_error()
        return TLSError(
            code: code, text: code == 0 ? otherwise : text(of: code), verification: verification,
            verifyResult: verifyResult)
    }

    /// Empties the queue after a failed system call, whose `errno` the caller saved.
    static func drain(systemError: CInt) -> TLSError {
        let text = systemError == 0 ? "the peer closed the connection" : systemText(systemError)
        return drain(otherwise: text)
    }

    private static func text(of code: UInt) -> String {
        // OpenSSL 3 wraps `errno` with this bit set (ERR_SYSTEM_FLAG), and has no words for it.
        if code & 0x8000_0000 != 0 { return systemText(CInt(code & 0x7FFF_FFFF)) }
        guard let reason = ERR_reason_error_string(code) else { return "OpenSSL failed" }
        return TLSError.sentence(of: String(cString: reason))
    }

    private static func systemText(_ error: CInt) -> String {
        guard let text = strerror(error) else { return "errno \(error)" }
        return String(cString: text)
    }
}
