// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// The server's side of one TLS connection whose socket somebody else reads and writes: what the
/// peer has sent goes in by `receive`, what is to be sent comes out by `takeOutput`.
package struct TLSPipe: ~Copyable {
    private let pointer: OpaquePointer
    // Both are the connection's own, and end with it.
    private let input: OpaquePointer
    private let output: OpaquePointer
    private var failed = false
    private var handshaken = false

    /// What one piece of plain text has at most: a TLS record.
    private static let recordBytes = 16_384

    package init(context: TLSContext) {
        guard let pointer = SSL_new(context.pointer), let input = BIO_new(BIO_s_mem()),
            let output = BIO_new(BIO_s_mem())
        else { fatalError("SSL_new: out of memory") }
        SSL_set_bio(pointer, input, output)
        SSL_set_accept_state(pointer)
        self.pointer = pointer
        self.input = input
        self.output = output
    }

    deinit { SSL_free(pointer) }

    package enum Outcome: Hashable, Sendable {
        /// More of the peer's bytes are needed.
        case open
        /// The peer sends nothing more.
        case closed
        /// The connection must end, once `takeOutput` is sent.
        case failed(TLSError)
    }

    /// Takes bytes from the peer, and passes the plain text in them to `body`.
    package mutating func receive(
        _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> Outcome {
        guard !failed else { return .failed(TLSError(text: "the connection has failed")) }
        ErrorQueue.clear()
        if bytes.count > 0 {
            let taken = BIO_write(input, bytes.baseAddress, CInt(bytes.count))
            precondition(taken == CInt(bytes.count), "a memory BIO takes all there is")
        }
        if !handshaken {
            let result = SSL_do_handshake(pointer)
            guard result == 1 else { return outcome(of: result) }
            handshaken = true
        }
        return withUnsafeTemporaryAllocation(byteCount: Self.recordBytes, alignment: 1) { record in
            while true {
                ErrorQueue.clear()
                let count = SSL_read(pointer, record.baseAddress, CInt(record.count))
                guard count > 0 else { return outcome(of: count) }
                body(UnsafeRawBufferPointer(rebasing: record[..<Int(count)]))
            }
        }
    }

    /// Encrypts bytes for the peer. Before the handshake has ended nothing can be sent.
    package mutating func send(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        guard handshaken, !failed else {
            return .failed(TLSError(text: "nothing can be sent on this connection"))
        }
        var rest = bytes
        while rest.count > 0 {
            ErrorQueue.clear()
            let count = SSL_write(pointer, rest.baseAddress, CInt(clamping: rest.count))
            guard count > 0 else { return outcome(of: count) }
            rest = UnsafeRawBufferPointer(rebasing: rest[Int(count)...])
        }
        return .open
    }

    /// Passes what is to be sent to the peer to `body`, in pieces.
    package mutating func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: Self.recordBytes, alignment: 1) { piece in
            while true {
                let count = BIO_read(output, piece.baseAddress, CInt(piece.count))
                guard count > 0 else { return }
                body(UnsafeRawBufferPointer(rebasing: piece[..<Int(count)]))
            }
        }
    }

    /// Tells the peer that nothing more is coming; `takeOutput` has the message.
    package mutating func close() {
        // After a failure, or before the handshake, OpenSSL forbids it.
        guard handshaken, !failed else { return }
        ErrorQueue.clear()
        _ = SSL_shutdown(pointer)
        ErrorQueue.clear()
    }

    private mutating func outcome(of result: CInt) -> Outcome {
        switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .open
        case SSL_ERROR_ZERO_RETURN: return .closed
        default:
            failed = true
            return .failed(ErrorQueue.drain(otherwise: "TLS has failed"))
        }
    }
}
