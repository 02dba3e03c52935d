// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

extension EVPKey {
    /// Reads a SubjectPublicKeyInfo (RFC 5280, 4.1.2.7) that takes all of the bytes.
    convenience init(publicKeyDER der: [UInt8]) throws(TLSError) {
        ErrorQueue.clear()
        let pointer = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var cursor = buffer.baseAddress
            guard let key = d2i_PUBKEY(nil, &cursor, buffer.count) else { return nil }
            guard cursor == buffer.baseAddress.map({ $0 + buffer.count }) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        guard let pointer else { throw ErrorQueue.drain(otherwise: "the key is damaged") }
        self.init(owning: pointer)
    }

    /// The public half as SubjectPublicKeyInfo; empty if OpenSSL cannot write it.
    var publicKeyDER: [UInt8] {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        let count = Int(i2d_PUBKEY(pointer, nil))
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var cursor = buffer.baseAddress
            initialized = max(0, Int(i2d_PUBKEY(pointer, &cursor)))
        }
    }

    /// Whether `signature` is this key's over SHA-256 of `message`: ECDSA in DER for a key on a
    /// curve, PKCS #1 v1.5 for an RSA key.
    func verifySHA256(_ message: [UInt8], signature: [UInt8]) -> Bool {
        ErrorQueue.clear()
        // A signature that does not parse queues an error.
        defer { ErrorQueue.clear() }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, pointer) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    var isRSA: Bool { EVP_PKEY_is_a(pointer, "RSA") == 1 }

    /// The size of a key: for RSA that of its modulus.
    var bits: Int { Int(EVP_PKEY_get_bits(pointer)) }
}
