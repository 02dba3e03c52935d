// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

extension Certificate {
    /// Reads a certificate that takes all of the bytes.
    package convenience init(der: [UInt8]) throws(TLSError) {
        ErrorQueue.clear()
        let pointer = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var cursor = buffer.baseAddress
            guard let certificate = d2i_X509(nil, &cursor, buffer.count) else { return nil }
            guard cursor == buffer.baseAddress.map({ $0 + buffer.count }) else {
                X509_free(certificate)
                return nil
            }
            return certificate
        }
        guard let pointer else { throw ErrorQueue.drain(otherwise: "bytes after a certificate") }
        self.init(owning: pointer)
    }

    /// The value of an extension, as DER.
    /// - Parameter oid: its object identifier in digits and points.
    /// - Returns: nil if the certificate has none of it, or more than one.
    package func extensionValue(oid: String) -> [UInt8]? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        guard let object = OBJ_txt2obj(oid, 1) else { return nil }
        defer { ASN1_OBJECT_free(object) }
        let index = X509_get_ext_by_OBJ(pointer, object, -1)
        guard index >= 0, X509_get_ext_by_OBJ(pointer, object, index) < 0,
            let found = X509_get_ext(pointer, index),
            let data = X509_EXTENSION_get_data(found), let start = ASN1_STRING_get0_data(data)
        else { return nil }
        return Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(data))))
    }
}

/// The only roots that a chain of certificates may end in. The system's are not among them.
package struct TrustedRoots: Sendable {
    private let certificates: [Certificate]

    /// A root, two authorities below it, and the leaf.
    private static let depthMax: CInt = 4

    /// Reads one or more certificates.
    package init(pem: String) throws(TLSError) { certificates = try PEM.certificates(in: pem) }

    /// Verifies that one of the roots vouches for `leaf` through `intermediates`, and that each of
    /// the chain is valid at a time in seconds since 1970. Neither names nor purposes are looked
    /// at, nor lists of revoked certificates.
    package func verify(
        _ leaf: Certificate, through intermediates: [Certificate], at seconds: Int64
    ) throws(TLSError) {
        ErrorQueue.clear()
        guard let store = X509_STORE_new() else { throw Self.outOfMemory }
        defer { X509_STORE_free(store) }
        // Takes a reference of its own.
        for root in certificates {
            guard X509_STORE_add_cert(store, root.pointer) == 1 else { throw Self.outOfMemory }
        }
        guard let untrusted = OPENSSL_sk_new(nil) else { throw Self.outOfMemory }
        // Takes no references: the certificates outlive the call.
        defer { OPENSSL_sk_free(untrusted) }
        for intermediate in intermediates {
            guard OPENSSL_sk_push(untrusted, UnsafeRawPointer(intermediate.pointer)) > 0 else {
                throw Self.outOfMemory
            }
        }
        guard let context = X509_STORE_CTX_new() else { throw Self.outOfMemory }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, leaf.pointer, untrusted) == 1 else {
            throw Self.outOfMemory
        }
        X509_STORE_CTX_set_time(context, 0, time_t(seconds))
        X509_STORE_CTX_set_depth(context, Self.depthMax)
        let isTrusted = withExtendedLifetime((leaf, intermediates)) {
            X509_verify_cert(context) == 1
        }
        guard !isTrusted else { return }
        let code = X509_STORE_CTX_get_error(context)
        throw ErrorQueue.drain(
            otherwise: "the certificate is refused",
            verification: X509_verify_cert_error_string(Int(code)).map { String(cString: $0) },
            verifyResult: Int(code))
    }

    private static var outOfMemory: TLSError {
        ErrorQueue.drain(otherwise: "OpenSSL cannot verify a chain: out of memory")
    }
}
