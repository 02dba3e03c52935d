// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import OpenSSL
internal import TestCertificates
internal import Testing

@Suite struct `A certificate chain` {
    private static let oid = "1.2.3.4.5"
    private static let now = Int64(Date.now.timeIntervalSince1970)

    private struct Chain {
        let root: CertificateAuthority
        let intermediate: CertificateAuthority
        let leaf: Certificate

        init(authoritiesBelow: Int = 1, expired: Bool = false) throws {
            root = try CertificateAuthority(
                name: "root", below: nil, authoritiesBelow: authoritiesBelow)
            intermediate = try CertificateAuthority(
                name: "between", below: root, authoritiesBelow: 0)
            let made = try intermediate.leafCertificate(extensionOID: oid, expired: expired) { _ in
                [4, 1, 7]
            }
            leaf = try certificate(made.certificatePEM)
        }

        /// OpenSSL's reason for a refusal; nil if the chain is trusted.
        func refusal(
            roots: String? = nil, through: [Certificate]? = nil, at seconds: Int64 = now
        ) throws -> String? {
            let trusted = try TrustedRoots(pem: roots ?? root.certificatePEM)
            let between = try certificate(intermediate.certificatePEM)
            do throws(TLSError) {
                try trusted.verify(leaf, through: through ?? [between], at: seconds)
                return nil
            } catch { return error.verification ?? error.text }
        }
    }

    private static func certificate(_ pem: String) throws -> Certificate {
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return try Certificate(der: [UInt8](try #require(Data(base64Encoded: lines.joined()))))
    }

    @Test func `a chain is trusted from its leaf to a root that was given, and no other`() throws {
        let chain = try Chain()
        #expect(try chain.refusal() == nil)
        let stranger = try Chain()
        #expect(try chain.refusal(roots: stranger.root.certificatePEM) != nil)
        let both = stranger.root.certificatePEM + chain.root.certificatePEM
        #expect(try chain.refusal(roots: both) == nil)
        #expect(
            try chain.refusal(through: []) == "unable to get local issuer certificate")
        // What is not a root is none, whoever says so.
        #expect(try chain.refusal(roots: chain.intermediate.certificatePEM) != nil)
    }

    @Test func `a chain is trusted only while all of it is valid`() throws {
        let chain = try Chain()
        #expect(
            try chain.refusal(at: Self.now - 7200) == "certificate is not yet valid")
        #expect(try chain.refusal(at: Self.now + 31 * 86_400) == "certificate has expired")
        #expect(try Chain(expired: true).refusal() == "certificate has expired")
    }

    @Test func `a chain is not trusted if an authority may not sign another`() throws {
        #expect(try Chain(authoritiesBelow: 0).refusal() == "path length constraint exceeded")
    }

    @Test func `an extension is found by its object identifier`() throws {
        let leaf = try Chain().leaf
        #expect(leaf.extensionValue(oid: Self.oid) == [4, 1, 7])
        #expect(leaf.extensionValue(oid: "1.2.3.4") == nil)
        #expect(leaf.extensionValue(oid: "no identifier") == nil)
        #expect(try ES256PublicKey(of: leaf).point?.count == 65)
    }

    @Test func `a certificate takes all of its bytes`() throws {
        let pem = try Chain().root.certificatePEM
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        let der = [UInt8](try #require(Data(base64Encoded: lines.joined())))
        #expect(throws: TLSError.self) { try Certificate(der: der + [0]) }
        #expect(throws: TLSError.self) { try Certificate(der: der.dropLast()) }
        #expect(throws: TLSError.self) { try Certificate(der: []) }
        #expect(throws: TLSError.self) { try TrustedRoots(pem: "") }
    }
}
