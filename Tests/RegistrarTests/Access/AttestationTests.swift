// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import TestCertificates
internal import Testing

@testable import RegistrarAccess

@Suite struct `An attestation` {
    /// Certificates of the tests are valid from an hour before they are made.
    private static let now = AttestedClock.now

    private static func fault(
        _ app: AttestedApp, keyID: [UInt8]? = nil, challenge: String = "challenge",
        appID: String = "\(AccessFixture.team).\(AccessFixture.app)",
        environment: PushEnvironment = .production, object: [UInt8]? = nil,
        roots: String = AttestationAuthorities.shared.root.certificatePEM, now: WallTime = now
    ) throws -> AttestationFault? {
        let expected = AttestationVerifier.Expected(
            keyID: keyID ?? app.keyID, clientDataHash: SHA256Digest.of(Array(challenge.utf8)),
            appID: appID, environment: environment)
        let verifier = AttestationVerifier(roots: try TrustedRoots(pem: roots))
        do throws(AttestationFault) {
            let key = try verifier.key(in: object ?? app.attestation, expected, now: now)
            #expect(key == app.point)
            return nil
        } catch { return error }
    }

    private static func chainFault(_ fault: AttestationFault?) -> String? {
        guard case .chain(let text)? = fault else { return nil }
        return text
    }

    @Test(arguments: PushEnvironment.allCases)
    func `an attestation as Apple makes it gives its key`(environment: PushEnvironment) throws {
        let app = try AttestedApp { $0.environment = environment }
        #expect(try Self.fault(app, environment: environment) == nil)
    }

    @Test func `an attestation of the other environment is refused`() throws {
        let app = try AttestedApp { $0.environment = .development }
        #expect(try Self.fault(app, environment: .production) == .environment)
        #expect(try Self.fault(AttestedApp(), environment: .development) == .environment)
    }

    @Test func `an attestation for another challenge is refused`() throws {
        let app = try AttestedApp()
        #expect(try Self.fault(app, challenge: "challengE") == .nonce)
        let other = try AttestedApp { $0.nonce = { $0.reversed() } }
        #expect(try Self.fault(other) == .nonce)
        let longer = try AttestedApp { $0.nonce = { $0 + [0] } }
        #expect(try Self.fault(longer) == .nonce)
        let none = try AttestedApp { $0.nonceOID = "1.2.840.113635.100.8.3" }
        #expect(try Self.fault(none) == .nonce)
    }

    @Test func `an attestation of another key than the app names is refused`() throws {
        let app = try AttestedApp()
        #expect(try Self.fault(app, keyID: AttestedApp().keyID) == .keyID)
        #expect(try Self.fault(app, keyID: []) == .keyID)
    }

    @Test func `an attestation of another app or team is refused`() throws {
        let app = try AttestedApp()
        #expect(try Self.fault(app, appID: "A1B2C3D4E5.com.example.Hom") == .appID)
        #expect(try Self.fault(app, appID: "A1B2C3D4E6.com.example.Home") == .appID)
    }

    @Test func `an attestation whose counter is not 0 is refused`() throws {
        #expect(try Self.fault(AttestedApp { $0.counter = 1 }) == .counter)
    }

    @Test func `an attestation whose credential ID is not the key ID is refused`() throws {
        let app = try AttestedApp { $0.credentialID = [UInt8](repeating: 1, count: 32) }
        #expect(try Self.fault(app) == .credentialID)
        #expect(try Self.fault(AttestedApp { $0.credentialID = [] }) == .credentialID)
    }

    @Test func `an attestation whose certificates end in another root is refused`() throws {
        let app = try AttestedApp { $0.authorities = try! AttestationAuthorities() }
        #expect(
            Self.chainFault(try Self.fault(app)) == "unable to get local issuer certificate")
        // A root of the same name, with another key.
        let root = try CertificateAuthority(name: "Test Root", below: nil, authoritiesBelow: 1)
        let fault = try Self.fault(AttestedApp(), roots: root.certificatePEM)
        #expect(Self.chainFault(fault) != nil)
        let intermediate = AttestationAuthorities.shared.intermediate.certificatePEM
        #expect(Self.chainFault(try Self.fault(AttestedApp(), roots: intermediate)) != nil)
    }

    @Test func `an attestation is refused without its authority, or with its leaf elsewhere`()
        throws
    {
        let other = try AttestationAuthorities().intermediate.certificatePEM
        let wrong = try AttestedApp { $0.chain = { leaf, _ in [leaf, AttestedApp.der(other)] } }
        #expect(Self.chainFault(try Self.fault(wrong)) != nil)
        // An authority has no nonce.
        let reversed = try AttestedApp { $0.chain = { [$1, $0] } }
        #expect(try Self.fault(reversed) == .nonce)
        let chains: [([UInt8], [UInt8]) -> [[UInt8]]] = [
            { leaf, _ in [leaf] }, { _, _ in [] },
            { leaf, authority in [leaf, authority, authority, authority] },
            { leaf, authority in [leaf, authority + [0]] }, { leaf, _ in [leaf, []] },
            { leaf, authority in [Array(leaf.dropLast()), authority] },
        ]
        for chain in chains {
            let app = try AttestedApp { $0.chain = chain }
            #expect(try Self.fault(app) == .malformed)
        }
    }

    @Test func `a leaf signs no other certificate`() throws {
        // A leaf of a real app, in the place of an authority.
        let root = AttestationAuthorities.shared.root.certificatePEM
        let leaf = try AttestationAuthorities.shared.intermediate.leafCertificate(
            extensionOID: "1.2.3.4", value: { _ in [0x05, 0x00] })
        let roots = try TrustedRoots(pem: root)
        #expect(throws: TLSError.self) {
            try roots.verify(
                Certificate(der: AttestedApp.der(leaf.certificatePEM)), through: [],
                at: Self.now.seconds)
        }
    }

    @Test func `an attestation is refused after its certificate's time, and before`() throws {
        let app = try AttestedApp { $0.isExpired = true }
        #expect(Self.chainFault(try Self.fault(app)) == "certificate has expired")
        let later = Self.now + .seconds(40 * 86_400)
        #expect(
            Self.chainFault(try Self.fault(AttestedApp(), now: later)) == "certificate has expired")
        let earlier = Self.now + .seconds(-86_400)
        #expect(
            Self.chainFault(try Self.fault(AttestedApp(), now: earlier))
                == "certificate is not yet valid")
    }

    @Test func `what is no attestation of App Attest is refused`() throws {
        #expect(try Self.fault(AttestedApp { $0.format = "apple" }) == .malformed)
        let app = try AttestedApp()
        #expect(try Self.fault(app, object: []) == .malformed)
        #expect(try Self.fault(app, object: app.attestation + [0]) == .malformed)
        #expect(try Self.fault(app, object: app.attestation.dropLast()) == .malformed)
        guard case .map(let members)? = CBOR(app.attestation) else { return }
        for name in members.keys {
            var fewer = members
            fewer[name] = nil
            #expect(try Self.fault(app, object: CBORWriter.encode(.map(fewer))) == .malformed)
            var others = members
            others[name] = .bytes([1])
            #expect(try Self.fault(app, object: CBORWriter.encode(.map(others))) == .malformed)
        }
    }

    @Test func `any byte of the authenticator data that differs is noticed`() throws {
        let app = try AttestedApp()
        guard case .map(var members)? = CBOR(app.attestation),
            let data = members["authData"]?.byteString
        else { return }
        for index in stride(from: 0, to: data.count, by: 7) {
            var changed = data
            changed[index] ^= 1
            members["authData"] = .bytes(changed)
            #expect(try Self.fault(app, object: CBORWriter.encode(.map(members))) != nil)
        }
    }

    @Test func `authenticator data that is cut off is refused`() {
        let whole = [UInt8](repeating: 0, count: 37)
        #expect(AuthenticatorData(whole)?.credential == nil)
        for count in 0..<37 { #expect(AuthenticatorData([UInt8](whole.prefix(count))) == nil) }
        let attested = whole + [UInt8](repeating: 1, count: 16) + [0, 2, 8, 9]
        #expect(AuthenticatorData(attested)?.credential?.id == [8, 9])
        for count in 38..<attested.count {
            #expect(AuthenticatorData([UInt8](attested.prefix(count))) == nil)
        }
        #expect(AuthenticatorData([UInt8](repeating: 0, count: 1025)) == nil)
    }
}
