// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL
package import OpenSSL

/// A certificate and its private key, both PEM.
package struct ServerCertificate: Sendable {
    package let certificatePEM: String
    package let keyPEM: String
}

/// A certificate authority that lives in memory and signs server certificates for simulators, tests
/// and the demo. Its own key never leaves it.
package struct CertificateAuthority: Sendable {
    /// What a client must trust.
    package let certificatePEM: String
    private let key: EVPKey
    private let certificate: Certificate
    private let name: String

    package init(name: String = "Lamplighter Simulator CA") throws(TLSError) {
        try self.init(name: name, below: nil, authoritiesBelow: 0)
    }

    /// - Parameter authoritiesBelow: how many authorities may stand between this one and a leaf.
    package init(
        name: String, below issuer: CertificateAuthority?, authoritiesBelow: Int
    ) throws(TLSError) {
        let key = try EVPKey.generateP256()
        let draft = try CertificateDraft(subject: name, issuer: issuer?.name ?? name, key: key)
        try draft.setValidity(from: Self.backdating, to: Self.lifetime)
        try draft.extend(NID_basic_constraints, "critical,CA:TRUE,pathlen:\(authoritiesBelow)")
        try draft.extend(NID_key_usage, "critical,keyCertSign,cRLSign")
        try draft.extend(NID_subject_key_identifier, "hash")
        if let issuer {
            try draft.extend(
                NID_authority_key_identifier, "keyid:always", issuer: issuer.certificate)
        }
        certificate = try draft.signed(by: issuer?.key ?? key)
        certificatePEM = try PEM.text(ofCertificate: certificate)
        self.key = key
        self.name = name
    }

    /// A certificate for `names` (DNS) and `addresses` (IPv4 or IPv6, no brackets) with a new key
    /// on P-256, valid for 30 days and backdated by an hour for clients whose clocks are behind.
    /// With `expired` it was valid from two hours ago until one hour ago.
    package func serverCertificate(
        names: [String] = ["localhost"], addresses: [String] = ["127.0.0.1", "::1"],
        expired: Bool = false
    ) throws(TLSError) -> ServerCertificate {
        let serverKey = try EVPKey.generateP256()
        let subject = names.first ?? addresses.first ?? "localhost"
        let draft = try CertificateDraft(subject: subject, issuer: name, key: serverKey)
        if expired {
            try draft.setValidity(from: 2 * Self.backdating, to: Self.backdating)
        } else {
            try draft.setValidity(from: Self.backdating, to: Self.lifetime)
        }
        let alternatives = names.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
        try draft.extend(NID_basic_constraints, "critical,CA:FALSE")
        try draft.extend(NID_key_usage, "critical,digitalSignature")
        try draft.extend(NID_ext_key_usage, "serverAuth")
        try draft.extend(NID_subject_alt_name, alternatives.joined(separator: ","))
        try draft.extend(NID_subject_key_identifier, "hash")
        try draft.extend(NID_authority_key_identifier, "keyid:always", issuer: certificate)
        return ServerCertificate(
            certificatePEM: try PEM.text(ofCertificate: try draft.signed(by: key)),
            keyPEM: try PEM.text(ofPrivateKey: serverKey))
    }

    /// A certificate for a key of its own with one extension that OpenSSL does not know, valid as
    /// a server's is.
    /// - Parameter value: makes the extension's value of the private key, both as the certificate
    ///   will have them.
    package func leafCertificate(
        extensionOID: String, expired: Bool = false,
        value: (_ keyPEM: String) throws -> [UInt8]
    ) throws -> ServerCertificate {
        let leafKey = try EVPKey.generateP256()
        let keyPEM = try PEM.text(ofPrivateKey: leafKey)
        let draft = try CertificateDraft(subject: "leaf", issuer: name, key: leafKey)
        try draft.setValidity(
            from: expired ? 2 * Self.backdating : Self.backdating,
            to: expired ? Self.backdating : Self.lifetime)
        try draft.extend(NID_basic_constraints, "critical,CA:FALSE")
        try draft.extend(NID_key_usage, "critical,digitalSignature")
        try draft.extend(oid: extensionOID, value: try value(keyPEM))
        return ServerCertificate(
            certificatePEM: try PEM.text(ofCertificate: try draft.signed(by: key)), keyPEM: keyPEM)
    }

    /// Seconds from now.
    private static let backdating = -3600
    private static let lifetime = 30 * 86_400
}

/// An X509 that is being filled in.
private struct CertificateDraft {
    private let certificate: Certificate

    init(subject: String, issuer: String, key: EVPKey) throws(TLSError) {
        ErrorQueue.clear()
        guard let pointer = X509_new() else {
            throw ErrorQueue.drain(otherwise: "X509_new: out of memory")
        }
        certificate = Certificate(owning: pointer)
        // The field counts from 0: 2 is version 3. Serial numbers are positive (RFC 5280, 4.1.2.2).
        let serial = Int.random(in: 1...Int.max)
        guard X509_set_version(pointer, 2) == 1,
            ASN1_INTEGER_set_int64(X509_get_serialNumber(pointer), Int64(serial)) == 1,
            X509_set_pubkey(pointer, key.pointer) == 1,
            Self.setCommonName(subject, of: X509_get_subject_name(pointer)),
            Self.setCommonName(issuer, of: X509_get_issuer_name(pointer))
        else { throw ErrorQueue.drain(otherwise: "the certificate's fields were refused") }
    }

    /// Both in seconds from now.
    func setValidity(from start: Int, to end: Int) throws(TLSError) {
        guard X509_gmtime_adj(X509_getm_notBefore(certificate.pointer), start) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate.pointer), end) != nil
        else { throw ErrorQueue.drain(otherwise: "the certificate's dates were refused") }
    }

    func extend(
        _ identifier: CInt, _ value: String, issuer: Certificate? = nil
    ) throws(TLSError) {
        var context = X509V3_CTX()
        let issuer = issuer ?? certificate
        X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
        guard let item = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
            throw ErrorQueue.drain(otherwise: "the extension \(value) was refused")
        }
        defer { X509_EXTENSION_free(item) }
        guard X509_add_ext(certificate.pointer, item, -1) == 1 else {
            throw ErrorQueue.drain(otherwise: "the extension \(value) was not added")
        }
    }

    /// Adds an extension that is not critical.
    func extend(oid: String, value: [UInt8]) throws(TLSError) {
        guard let object = OBJ_txt2obj(oid, 1), let data = ASN1_OCTET_STRING_new() else {
            throw ErrorQueue.drain(otherwise: "the object identifier \(oid) was refused")
        }
        defer {
            ASN1_OBJECT_free(object)
            ASN1_OCTET_STRING_free(data)
        }
        guard ASN1_OCTET_STRING_set(data, value, CInt(value.count)) == 1,
            let item = X509_EXTENSION_create_by_OBJ(nil, object, 0, data)
        else { throw ErrorQueue.drain(otherwise: "the extension \(oid) was refused") }
        defer { X509_EXTENSION_free(item) }
        guard X509_add_ext(certificate.pointer, item, -1) == 1 else {
            throw ErrorQueue.drain(otherwise: "the extension \(oid) was not added")
        }
    }

    func signed(by key: EVPKey) throws(TLSError) -> Certificate {
        guard X509_sign(certificate.pointer, key.pointer, EVP_sha256()) > 0 else {
            throw ErrorQueue.drain(otherwise: "the certificate was not signed")
        }
        return certificate
    }

    private static func setCommonName(_ value: String, of name: OpaquePointer?) -> Bool {
        // MBSTRING_UTF8, a macro with a cast: 0x1000. Common names end at 64 characters.
        let text = Array(value.utf8.prefix(64))
        return X509_NAME_add_entry_by_txt(
            name, "CN", 0x1000, text, CInt(text.count), -1, 0) == 1
    }
}
