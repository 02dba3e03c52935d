// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import OpenSSL
import PushModel
import RecordFormats
import TestCertificates

@testable import RegistrarAccess

/// Writes CBOR in its shortest form, keys in the order of CTAP2.
enum CBORWriter {
    static func encode(_ value: CBOR) -> [UInt8] {
        switch value {
        case .unsigned(let number): head(0, number)
        case .negative(let number): head(1, number)
        case .bytes(let bytes): head(2, UInt64(bytes.count)) + bytes
        case .text(let text): head(3, UInt64(text.utf8.count)) + Array(text.utf8)
        case .array(let values):
            head(4, UInt64(values.count)) + values.flatMap { encode($0) }
        case .map(let members):
            head(5, UInt64(members.count))
                + members.sorted { ($0.key.utf8.count, $0.key) < ($1.key.utf8.count, $1.key) }
                .flatMap { encode(.text($0.key)) + encode($0.value) }
        }
    }

    private static func head(_ kind: UInt8, _ number: UInt64) -> [UInt8] {
        switch number {
        case 0..<24: [kind << 5 | UInt8(number)]
        case 24..<256: [kind << 5 | 24, UInt8(number)]
        case 256..<65_536: [kind << 5 | 25] + UInt16(number).bigEndianBytes
        case 65_536..<(1 << 32): [kind << 5 | 26] + UInt32(number).bigEndianBytes
        default: [kind << 5 | 27] + number.bigEndianBytes
        }
    }
}

/// What stands in for Apple's authorities.
struct AttestationAuthorities: Sendable {
    let root: CertificateAuthority
    let intermediate: CertificateAuthority

    init() throws {
        root = try CertificateAuthority(name: "Test Root", below: nil, authoritiesBelow: 1)
        intermediate = try CertificateAuthority(
            name: "Test Attestation CA", below: root, authoritiesBelow: 0)
    }

    static let shared = try! AttestationAuthorities()
}

/// An app on a device: makes a key, has it attested by the test's authorities, and asserts. What is
/// not changed in a recipe is as Apple makes it.
struct AttestedApp {
    struct Recipe {
        var authorities = AttestationAuthorities.shared
        var chain: (_ leaf: [UInt8], _ intermediate: [UInt8]) -> [[UInt8]] = { [$0, $1] }
        var appID = "\(AccessFixture.team).\(AccessFixture.app)"
        var environment = PushEnvironment.production
        var challenge = "challenge"
        var counter: UInt32 = 0
        var credentialID: [UInt8]?
        var format = "apple-appattest"
        var nonceOID = "1.2.840.113635.100.8.2"
        var nonce: ([UInt8]) -> [UInt8] = { $0 }
        var isExpired = false
    }

    let key: ES256Key
    let point: [UInt8]
    let attestation: [UInt8]

    var keyID: [UInt8] { SHA256Digest.of(point) }

    init(_ change: (inout Recipe) -> Void = { _ in }) throws {
        var recipe = Recipe()
        change(&recipe)
        var authData: [UInt8] = []
        let leaf = try recipe.authorities.intermediate.leafCertificate(
            extensionOID: recipe.nonceOID, expired: recipe.isExpired
        ) { keyPEM in
            let point = try Self.point(ES256Key(pem: keyPEM))
            authData = Self.authenticatorData(
                appID: recipe.appID, flags: 0x40, counter: recipe.counter)
            authData += AttestationVerifier.aaguid(recipe.environment)
            let id = recipe.credentialID ?? SHA256Digest.of(point)
            authData += UInt16(id.count).bigEndianBytes + id
            // The key in COSE (RFC 9053, 7.1), as Apple appends it.
            authData += [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]
            authData += point[1...32] + [0x22, 0x58, 0x20] + point[33...]
            let clientDataHash = SHA256Digest.of(Array(recipe.challenge.utf8))
            return Self.nonceExtension(recipe.nonce(SHA256Digest.of(authData + clientDataHash)))
        }
        key = try ES256Key(pem: leaf.keyPEM)
        point = try Self.point(key)
        let chain = recipe.chain(
            Self.der(leaf.certificatePEM),
            Self.der(recipe.authorities.intermediate.certificatePEM))
        attestation = CBORWriter.encode(
            .map([
                "fmt": .text(recipe.format), "authData": .bytes(authData),
                "attStmt": .map([
                    "x5c": .array(chain.map { .bytes($0) }),
                    "receipt": .bytes([UInt8](repeating: 0x30, count: 3600)),
                ]),
            ]))
    }

    /// What `generateAssertion` makes, in base64.
    func assertion(
        _ clientDataHash: [UInt8], counter: UInt32 = 1,
        appID: String = "\(AccessFixture.team).\(AccessFixture.app)"
    ) throws -> String {
        let data = Self.authenticatorData(appID: appID, flags: 0x40, counter: counter)
        let nonce = SHA256Digest.of(data + clientDataHash)
        return Base64.encode(
            CBORWriter.encode(
                .map([
                    "signature": .bytes(try key.signDER(nonce)),
                    "authenticatorData": .bytes(data),
                ])))
    }

    /// The request with what the app sends in `authorization`.
    func asserting(
        _ request: AccessRequest, credential: String, date: WallTime = AccessFixture.now,
        counter: UInt32 = 1
    ) throws -> AccessRequest {
        let hash = Assertion.clientDataHash(
            method: request.method, target: request.target, date: date.rfc3339, body: request.body)
        let assertion = try assertion(hash, counter: counter)
        var request = request
        request.authorization = [
            "AppAttest credential=\"\(credential)\", assertion=\"\(assertion)\", "
                + "date=\"\(date.rfc3339)\""
        ]
        return request
    }

    private static func authenticatorData(
        appID: String, flags: UInt8, counter: UInt32
    ) -> [UInt8] {
        SHA256Digest.of(Array(appID.utf8)) + [flags] + counter.bigEndianBytes
    }

    /// 30 24 A1 22 04 20 and 32 bytes, as real certificates have it.
    private static func nonceExtension(_ nonce: [UInt8]) -> [UInt8] {
        [0x30, 0x24, 0xA1, 0x22, 0x04, 0x20] + nonce
    }

    private static func point(_ key: ES256Key) throws -> [UInt8] {
        try ES256PublicKey(pem: try key.publicPEM()).point!
    }

    static func der(_ pem: String) -> [UInt8] {
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        return [UInt8](Data(base64Encoded: lines.joined())!)
    }
}
