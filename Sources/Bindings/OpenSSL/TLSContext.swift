// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// The settings that the streams of one role share. TLS 1.2 or newer, HTTP/2 by ALPN, no
/// renegotiation and no session cache. Immutable once made, so any thread may open streams on it.
// SAFETY: SSL_CTX counts its references atomically and is only read after `init`.
package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    private init(method: OpaquePointer?) throws(TLSError) {
        ErrorQueue.clear()
        guard let pointer = SSL_CTX_new(method) else {
            throw ErrorQueue.drain(otherwise: "SSL_CTX_new failed")
        }
        self.pointer = pointer
        guard COpenSSL_requireTLS12(pointer) == 1 else {
            throw ErrorQueue.drain(otherwise: "TLS 1.2 is not available")
        }
        // A session is a non-blocking socket fed from one growing buffer: a short write is
        // progress, and the buffer may have moved by the next try. SSL_MODE_AUTO_RETRY, on by
        // default, stays on: with read-ahead a record that carries no data (a session ticket) may
        // have data behind it in OpenSSL's own buffer, which no poll of the socket would report.
        let modes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        _ = COpenSSL_setMode(pointer, Int(modes))
        // 64 KiB: four full records in one system call instead of two calls for each record.
        COpenSSL_setReadAhead(pointer, 65_536)
        COpenSSL_setNoSessionCache(pointer)
        COpenSSL_setNoRenegotiation(pointer)
    }

    deinit { SSL_CTX_free(pointer) }

    /// Verifies the server's chain, against the PEM file `caFile` or the system's trust store,
    /// and its name; offers `h2` by ALPN.
    package static func client(caFile: String?) throws(TLSError) -> TLSContext {
        let context = try TLSContext(method: TLS_client_method())
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        let loaded =
            if let caFile {
                SSL_CTX_load_verify_locations(context.pointer, caFile, nil)
            } else {
                SSL_CTX_set_default_verify_paths(context.pointer)
            }
        guard loaded == 1 else {
            let place = caFile ?? "the system's trust store"
            let error = ErrorQueue.drain(otherwise: "it holds none")
            throw TLSError(
                code: error.code, text: "no trusted certificates in \(place): \(error.text)")
        }
        let offer = [UInt8(2)] + Array("h2".utf8)
        // Unlike its siblings this function answers 0 for success.
        guard SSL_CTX_set_alpn_protos(context.pointer, offer, CUnsignedInt(offer.count)) == 0
        else { throw ErrorQueue.drain(otherwise: "ALPN is not available") }
        return context
    }

    /// Presents `certificatePEM` (leaf first, then any intermediates) and selects `h2`. A client
    /// that offers other protocols only is refused with an alert; one that offers none is served.
    package static func server(
        certificatePEM: String, keyPEM: String
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(method: TLS_server_method())
        try context.present(certificatePEM: certificatePEM, keyPEM: keyPEM)
        // Tickets would be of no use without a session cache.
        SSL_CTX_set_num_tickets(context.pointer, 0)
        SSL_CTX_set_alpn_select_cb(
            context.pointer,
            { _, selected, selectedBytes, offered, offeredBytes, _ in
                TLSContext.selectHTTP2(selected, selectedBytes, offered, offeredBytes)
            }, nil)
        return context
    }

    /// Presents `certificatePEM` as `server` does, and leaves the protocol open: for HTTP/1.1, which
    /// clients speak if none is agreed on.
    package static func plainServer(
        certificatePEM: String, keyPEM: String
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(method: TLS_server_method())
        try context.present(certificatePEM: certificatePEM, keyPEM: keyPEM)
        SSL_CTX_set_num_tickets(context.pointer, 0)
        return context
    }

    private func present(certificatePEM: String, keyPEM: String) throws(TLSError) {
        let certificates = try PEM.certificates(in: certificatePEM)
        guard let leaf = certificates.first, SSL_CTX_use_certificate(pointer, leaf.pointer) == 1
        else { throw ErrorQueue.drain(otherwise: "no certificate in the PEM text") }
        for intermediate in certificates.dropFirst() {
            // Takes the reference over on success, hence the extra one.
            X509_up_ref(intermediate.pointer)
            let argument = UnsafeMutableRawPointer(intermediate.pointer)
            guard SSL_CTX_ctrl(pointer, SSL_CTRL_EXTRA_CHAIN_CERT, 0, argument) == 1 else {
                X509_free(intermediate.pointer)
                throw ErrorQueue.drain(otherwise: "the certificate chain was refused")
            }
        }
        let key = try PEM.privateKey(in: keyPEM)
        guard SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1,
            SSL_CTX_check_private_key(pointer) == 1
        else { throw ErrorQueue.drain(otherwise: "the private key was refused") }
    }

    private static func selectHTTP2(
        _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
        _ selectedBytes: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?, _ offeredBytes: CUnsignedInt
    ) -> CInt {
        guard let offered, let selected, let selectedBytes else {
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        var index = 0
        while index < Int(offeredBytes) {
            let bytes = Int(offered[index])
            let name = offered + index + 1
            if bytes == 2, index + 2 < Int(offeredBytes), name[0] == 0x68, name[1] == 0x32 {
                selected.pointee = name
                selectedBytes.pointee = 2
                return SSL_TLSEXT_ERR_OK
            }
            index += 1 + bytes
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}
