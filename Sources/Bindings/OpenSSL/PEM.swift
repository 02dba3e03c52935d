// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// One reference to an X509, given back when the last holder lets go.
// SAFETY: references are counted atomically, and a certificate that is signed is only read.
package final class Certificate: @unchecked Sendable {
    package let pointer: OpaquePointer

    package init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { X509_free(pointer) }
}

/// One reference to an EVP_PKEY.
// SAFETY: OpenSSL allows concurrent use of an EVP_PKEY that nobody changes, and after `init`
// nobody does.
package final class EVPKey: @unchecked Sendable {
    package let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// A new key on P-256, the curve of ES256.
    package static func generateP256() throws(TLSError) -> EVPKey {
        ErrorQueue.clear()
        guard let key = COpenSSL_generateP256() else {
            throw ErrorQueue.drain(otherwise: "no P-256 key could be generated")
        }
        return EVPKey(owning: key)
    }

    var isEC: Bool { EVP_PKEY_is_a(pointer, "EC") == 1 }

    var isP256: Bool {
        // 32 holds the names of all curves; a longer one would be cut and differ anyway.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { name in
            guard EVP_PKEY_get_group_name(pointer, name.baseAddress, name.count, nil) == 1,
                let start = name.baseAddress
            else { return false }
            return String(cString: start) == "prime256v1"
        }
    }
}

/// PEM text in and out of OpenSSL, through memory BIOs that never outlive a call.
package enum PEM {
    static func certificates(in pem: String) throws(TLSError) -> [Certificate] {
        ErrorQueue.clear()
        var certificates: [Certificate] = []
        reading(pem) { bio, password in
            while let certificate = PEM_read_bio_X509(bio, nil, nil, password) {
                certificates.append(Certificate(owning: certificate))
            }
        }
        guard !certificates.isEmpty else {
            throw ErrorQueue.drain(otherwise: "no certificate in the PEM text")
        }
        // The read that found the end of the text has queued "no start line".
        ErrorQueue.clear()
        return certificates
    }

    static func privateKey(in pem: String) throws(TLSError) -> EVPKey {
        ErrorQueue.clear()
        guard let key = reading(pem, { PEM_read_bio_PrivateKey($0, nil, nil, $1) }) else {
            ErrorQueue.clear()
            throw TLSError(text: unusable(pem, wanted: "PRIVATE KEY"))
        }
        return EVPKey(owning: key)
    }

    static func publicKey(in pem: String) throws(TLSError) -> EVPKey {
        ErrorQueue.clear()
        guard let key = reading(pem, { PEM_read_bio_PUBKEY($0, nil, nil, $1) }) else {
            ErrorQueue.clear()
            throw TLSError(text: unusable(pem, wanted: "PUBLIC KEY"))
        }
        return EVPKey(owning: key)
    }

    package static func text(ofCertificate certificate: Certificate) throws(TLSError) -> String {
        try written { PEM_write_bio_X509($0, certificate.pointer) }
    }

    /// PKCS#8, unencrypted: the form of Apple's `.p8` files.
    package static func text(ofPrivateKey key: EVPKey) throws(TLSError) -> String {
        try written { PEM_write_bio_PKCS8PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) }
    }

    static func text(ofPublicKey key: EVPKey) throws(TLSError) -> String {
        try written { PEM_write_bio_PUBKEY($0, key.pointer) }
    }

    /// What is wrong with a text that holds no key. OpenSSL says "unsupported" of them all.
    private static func unusable(_ pem: String, wanted: String) -> String {
        let lines = pem.split(whereSeparator: \.isNewline)
        guard let first = lines.first(where: { $0.hasPrefix("-----BEGIN ") }) else {
            return "it is not PEM, which has a line -----BEGIN \(wanted)-----"
        }
        let kind = first.dropFirst("-----BEGIN ".count).prefix { $0 != "-" }
        if kind.hasPrefix("ENCRYPTED") || pem.contains("Proc-Type: 4,ENCRYPTED") {
            return "it is encrypted with a password, which cannot be given"
        }
        // Whatever else stands there is not quoted: it may be the key.
        guard isLabel(kind) else { return "its line -----BEGIN \(wanted)----- is damaged" }
        guard kind.hasSuffix(wanted) else { return "it holds a \(kind) and no \(wanted)" }
        return "its PEM is damaged or cut off"
    }

    /// Whether a PEM text may be called so (RFC 7468): `EC PRIVATE KEY`, for one.
    private static func isLabel(_ text: Substring) -> Bool {
        text.utf8.count <= 40
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: " "):
                    true
                default: false
                }
            }
    }

    /// - Parameter body: is lent the text and a password. Any text may say that it is encrypted;
    ///   without a password OpenSSL would ask for one on the terminal, and wait.
    private static func reading<Result>(
        _ pem: String, _ body: (OpaquePointer, UnsafeMutableRawPointer) -> Result
    ) -> Result {
        var pem = pem
        return pem.withUTF8 { utf8 in
            // Fails only when out of memory. The length is explicit: -1 would mean "until NUL".
            guard let bio = BIO_new_mem_buf(utf8.baseAddress, CInt(clamping: utf8.count)) else {
                fatalError("BIO_new_mem_buf: out of memory")
            }
            defer { BIO_free(bio) }
            return "".withCString { body(bio, UnsafeMutableRawPointer(mutating: $0)) }
        }
    }

    private static func written(
        _ body: (OpaquePointer) -> CInt
    ) throws(TLSError) -> String {
        ErrorQueue.clear()
        guard let bio = BIO_new(BIO_s_mem()) else {
            throw ErrorQueue.drain(otherwise: "BIO_new: out of memory")
        }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw ErrorQueue.drain(otherwise: "the PEM was not written") }
        let count = BIO_ctrl_pending(bio)
        return String(unsafeUninitializedCapacity: count) { buffer in
            max(0, Int(BIO_read(bio, buffer.baseAddress, CInt(clamping: count))))
        }
    }
}
