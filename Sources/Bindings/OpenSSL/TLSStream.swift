// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL
internal import Glibc

/// How far a handshake has come.
package enum TLSProgress: Hashable, Sendable {
    case done
    /// Call again when the descriptor is readable.
    case wantsRead
    /// Call again when the descriptor is writable.
    case wantsWrite
    /// The handshake failed for good: the stream is of no further use.
    case failed(TLSError)
}

/// What came of one read or write.
package enum TLSTransfer: Hashable, Sendable {
    /// This many bytes were moved, at least 1.
    case bytes(Int)
    case wantsRead
    case wantsWrite
    /// The peer ended the stream in order (close_notify).
    case closed
    /// The stream failed for good. A connection that ends without close_notify is a failure too.
    case failed(TLSError)
}

/// One TLS connection over a connected, non-blocking socket, which stays the caller's: closing
/// the descriptor, after `close()`, is not this type's business.
///
/// Reads run ahead: the stream may hold bytes that the socket no longer has, so read until
/// `wantsRead` before you wait for the descriptor. Writing to a connection that the peer has reset
/// raises SIGPIPE: the process must ignore that signal, as every program of ours does.
package struct TLSStream: ~Copyable {
    private let pointer: OpaquePointer
    /// Why the handshake must not begin: the server name could not be set for verification.
    private var refusal: TLSError?
    private var failed = false
    private var handshaken = false

    /// `serverName` is the name or IP address, without brackets, that the server's certificate must
    /// bear; nil makes the stream the server's side.
    package init(context: TLSContext, descriptor: CInt, serverName: String?) {
        guard let pointer = SSL_new(context.pointer), SSL_set_fd(pointer, descriptor) == 1 else {
            fatalError("SSL_new: out of memory")
        }
        self.pointer = pointer
        if let serverName {
            SSL_set_connect_state(pointer)
            refusal = Self.expect(serverName, on: pointer)
        } else {
            SSL_set_accept_state(pointer)
            refusal = nil
        }
    }

    deinit { SSL_free(pointer) }

    /// An IP address is verified as such, and never sent as SNI (RFC 6066, section 3).
    private static func expect(_ serverName: String, on pointer: OpaquePointer) -> TLSError? {
        ErrorQueue.clear()
        // An empty name would switch the check off.
        guard !serverName.isEmpty else { return TLSError(text: "the server name is empty") }
        if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(pointer), serverName) == 1 { return nil }
        SSL_set_hostflags(pointer, CUnsignedInt(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        guard SSL_set1_host(pointer, serverName) == 1,
            COpenSSL_setServerName(pointer, serverName) == 1
        else { return ErrorQueue.drain(otherwise: "\(serverName) is no host name") }
        ErrorQueue.clear()
        return nil
    }

    package mutating func handshake() -> TLSProgress {
        if let refusal { return .failed(refusal) }
        ErrorQueue.clear()
        let result = SSL_do_handshake(pointer)
        if result == 1 {
            handshaken = true
            return .done
        }
        switch outcome(of: result) {
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .failed(let error): return .failed(error)
        case .closed, .bytes: return .failed(TLSError(text: "closed during the handshake"))
        }
    }

    package mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSTransfer {
        ErrorQueue.clear()
        let count = SSL_read(pointer, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .bytes(Int(count)) : outcome(of: count)
    }

    /// Writes at most one record (16 KiB). `buffer` must not be empty, and after `wantsRead` or
    /// `wantsWrite` the next write must begin with the same bytes.
    package mutating func write(_ buffer: UnsafeRawBufferPointer) -> TLSTransfer {
        precondition(buffer.count > 0, "a write has bytes: SSL_write of none is undefined")
        ErrorQueue.clear()
        let count = SSL_write(pointer, buffer.baseAddress, CInt(clamping: buffer.count))
        return count > 0 ? .bytes(Int(count)) : outcome(of: count)
    }

    /// What ALPN agreed on, nil when nothing was negotiated.
    package var negotiatedProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var count: CUnsignedInt = 0
        SSL_get0_alpn_selected(pointer, &name, &count)
        guard let name, count > 0 else { return nil }
        return String(
            decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
    }

    /// `TLSv1.3`, for the log.
    package var version: String { String(cString: SSL_get_version(pointer)) }

    /// Tells the peer that nothing more is coming; does not wait for its answer.
    package mutating func close() {
        // After a failure, or before the handshake, OpenSSL forbids it.
        guard handshaken, !failed else { return }
        ErrorQueue.clear()
        _ = SSL_shutdown(pointer)
        ErrorQueue.clear()
    }

    private mutating func outcome(of result: CInt) -> TLSTransfer {
        // Read before any other call, which could overwrite it.
        let systemError = errno
        switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            failed = true
            return .failed(ErrorQueue.drain(systemError: systemError))
        default:
            failed = true
            let verifyResult = SSL_get_verify_result(pointer)
            let isRefusal = !handshaken && verifyResult != X509_V_OK
            let text =
                isRefusal ? String(cString: X509_verify_cert_error_string(verifyResult)) : nil
            return .failed(
                ErrorQueue.drain(
                    otherwise: "TLS failed", verification: text,
                    verifyResult: isRefusal ? verifyResult : 0))
        }
    }
}
