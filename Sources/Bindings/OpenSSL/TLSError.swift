// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL
internal import Glibc

/// What OpenSSL, or the socket below it, said when a TLS operation failed.
package struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// OpenSSL's packed code; 0 when the failure is the socket's or our own.
    package let code: UInt
    /// OpenSSL's text of the first error in its queue, or the system's text of `errno`.
    package let text: String
    /// Why the peer's certificate was refused, in OpenSSL's words; nil for any other failure.
    package let verification: String?

    package init(code: UInt = 0, text: String, verification: String? = nil) {
        self.code = code
        self.text = text
        self.verification = verification
    }

    package var description: String {
        guard let verification else { return text }
        return "certificate refused: \(verification) (\(text))"
    }
}

/// OpenSSL's queue of errors: one per thread and shared by every library in the process. It is
/// cleared before a call whose result is judged and drained after a failure; otherwise the next
/// caller (libcurl, librdkafka) would read our failure as its own.
enum ErrorQueue {
    static func clear() { ERR_clear_error() }

    /// Empties the queue. `otherwise` is the text for a failure that queued nothing.
    static func drain(otherwise: String, verification: String? = nil) -> TLSError {
        let code = ERR_get_error()
        ERR_clear_error()
        return TLSError(
            code: code, text: code == 0 ? otherwise : text(of: code), verification: verification)
    }

    /// The same for a failed system call, whose `errno` the caller saved.
    static func drain(systemError: CInt) -> TLSError {
        let text = systemError == 0 ? "the peer closed the connection" : systemText(systemError)
        return drain(otherwise: text)
    }

    private static func text(of code: UInt) -> String {
        // 256: the size that ERR_error_string documents as always enough.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return "" }
            ERR_error_string_n(code, start, buffer.count)
            return String(cString: start)
        }
    }

    private static func systemText(_ error: CInt) -> String {
        guard let text = strerror(error) else { return "errno \(error)" }
        return String(cString: text)
    }
}
