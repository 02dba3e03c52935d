// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// Why a key is not one for ES256, or could not sign.
package enum ES256Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// Not PEM, damaged, encrypted, or not a key of the kind asked for; with OpenSSL's text.
    case unreadable(String)
    /// A key of another algorithm, such as RSA.
    case notEC
    /// An elliptic curve other than P-256.
    case wrongCurve
    /// OpenSSL could not sign or generate; with its text.
    case failed(String)

    package var description: String {
        switch self {
        case .unreadable(let text): "the key cannot be read: \(text)"
        case .notEC: "the key is not an elliptic-curve key"
        case .wrongCurve: "the key is not on the curve P-256"
        case .failed(let text): "OpenSSL failed: \(text)"
        }
    }
}

/// A private key on P-256: what Apple's `.p8` file holds. Any thread may sign with it.
package struct ES256Key: Sendable {
    private let key: EVPKey

    /// Reads PKCS#8 (`BEGIN PRIVATE KEY`) or SEC 1 (`BEGIN EC PRIVATE KEY`), unencrypted.
    package init(pem: String) throws(ES256Error) {
        do throws(TLSError) { key = try PEM.privateKey(in: pem) } catch {
            throw .unreadable(error.description)
        }
        try Self.check(key)
    }

    /// A new key pair for tests and the demo: PKCS#8 and SubjectPublicKeyInfo, both PEM.
    package static func generate() throws(ES256Error) -> (privatePEM: String, publicPEM: String) {
        do throws(TLSError) {
            let key = try EVPKey.generateP256()
            return (try PEM.text(ofPrivateKey: key), try PEM.text(ofPublicKey: key))
        } catch { throw .failed(error.description) }
    }

    /// The public half, as SubjectPublicKeyInfo in PEM.
    package func publicPEM() throws(ES256Error) -> String {
        do throws(TLSError) { return try PEM.text(ofPublicKey: key) } catch {
            throw .failed(error.description)
        }
    }

    /// ECDSA over SHA-256 as JOSE wants it (RFC 7518, 3.4): r and s, each 32 bytes, big-endian.
    package func sign(_ message: some Collection<UInt8>) throws(ES256Error) -> [UInt8] {
        let signature = try signDER(message)
        guard let raw = ECDSASignature.raw(fromDER: signature) else {
            throw .failed(ErrorQueue.drain(otherwise: "d2i_ECDSA_SIG").description)
        }
        return raw
    }

    /// ECDSA over SHA-256 as ASN.1 DER, the form of X.509 and of App Attest.
    package func signDER(_ message: some Collection<UInt8>) throws(ES256Error) -> [UInt8] {
        ErrorQueue.clear()
        let message = Array(message)
        guard let context = EVP_MD_CTX_new() else { throw .failed("out of memory") }
        defer { EVP_MD_CTX_free(context) }
        // A DER signature on P-256 has at most 72 bytes.
        var signature = [UInt8](repeating: 0, count: 72)
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key.pointer) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { throw .failed(ErrorQueue.drain(otherwise: "EVP_DigestSign").description) }
        return Array(signature.prefix(count))
    }

    static func check(_ key: EVPKey) throws(ES256Error) {
        guard key.isEC else { throw .notEC }
        guard key.isP256 else { throw .wrongCurve }
    }
}

/// The public half of an `ES256Key`.
package struct ES256PublicKey: Sendable {
    private let key: EVPKey

    /// Reads SubjectPublicKeyInfo (`BEGIN PUBLIC KEY`).
    package init(pem: String) throws(ES256Error) {
        do throws(TLSError) { key = try PEM.publicKey(in: pem) } catch {
            throw .unreadable(error.description)
        }
        try ES256Key.check(key)
    }

    /// The key of a certificate.
    package init(of certificate: Certificate) throws(ES256Error) {
        ErrorQueue.clear()
        guard let pointer = X509_get_pubkey(certificate.pointer) else {
            throw .unreadable(ErrorQueue.drain(otherwise: "the certificate has no key").text)
        }
        key = EVPKey(owning: pointer)
        try ES256Key.check(key)
    }

    /// Reads a point of the curve in the uncompressed form of X9.62: 0x04, x and y, 65 bytes. One
    /// that is not on the curve is refused.
    package init(point: [UInt8]) throws(ES256Error) {
        guard point.count == Self.pointBytes, point.first == 4 else {
            throw .unreadable("a point has 65 bytes, the first of which is 4")
        }
        do throws(TLSError) { key = try EVPKey(publicKeyDER: Self.prefix + point) } catch {
            throw .unreadable(error.text)
        }
        try ES256Key.check(key)
    }

    /// The point of the curve in the uncompressed form of X9.62, 65 bytes; nil if the key was
    /// written with a compressed point.
    package var point: [UInt8]? {
        let der = key.publicKeyDER
        guard der.count == Self.prefix.count + Self.pointBytes, der.starts(with: Self.prefix) else {
            return nil
        }
        return Array(der.dropFirst(Self.prefix.count))
    }

    private static let pointBytes = 65
    /// A SubjectPublicKeyInfo (RFC 5480) before its point: id-ecPublicKey, prime256v1, and the
    /// head of the bit string.
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// Whether `signature` is this key's for `message`. 64 bytes are read as raw r and s, any other
    /// length as ASN.1 DER, which several senders emit and APNs accepts.
    package func verify(
        _ message: some Collection<UInt8>, signature: some Collection<UInt8>
    ) -> Bool {
        guard signature.count == 64 else { return verify(message, der: Array(signature)) }
        guard let der = ECDSASignature.der(fromRaw: Array(signature)) else { return false }
        return verify(message, der: der)
    }

    /// Whether `signature`, ASN.1 DER whatever its length, is this key's for `message`.
    package func verify(_ message: some Collection<UInt8>, der signature: [UInt8]) -> Bool {
        key.verifySHA256(Array(message), signature: signature)
    }
}

/// The two encodings of an ECDSA signature on P-256.
enum ECDSASignature {
    /// r and s may be shorter than 32 bytes: both are padded.
    static func raw(fromDER der: some Collection<UInt8>) -> [UInt8]? {
        let der = Array(der)
        return der.withUnsafeBufferPointer { buffer -> [UInt8]? in
            var cursor = buffer.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &cursor, buffer.count) else { return nil }
            defer { ECDSA_SIG_free(signature) }
            var raw = [UInt8](repeating: 0, count: 64)
            let padded = raw.withUnsafeMutableBufferPointer { output -> Bool in
                guard let start = output.baseAddress else { return false }
                return BN_bn2binpad(ECDSA_SIG_get0_r(signature), start, 32) == 32
                    && BN_bn2binpad(ECDSA_SIG_get0_s(signature), start + 32, 32) == 32
            }
            return padded ? raw : nil
        }
    }

    static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        guard let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let r = BN_bin2bn(Array(raw.prefix(32)), 32, nil)
        let s = BN_bin2bn(Array(raw.dropFirst(32)), 32, nil)
        // Takes both numbers over, unless it fails.
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        let count = i2d_ECDSA_SIG(signature, nil)
        guard count > 0 else { return nil }
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
            var cursor = buffer.baseAddress
            initialized = Int(i2d_ECDSA_SIG(signature, &cursor))
        }
    }
}
