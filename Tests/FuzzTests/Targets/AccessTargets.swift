// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import TestCertificates

@testable import RegistrarAccess

/// An attestation of App Attest, an assertion or any CBOR. The input: the bytes.
///
/// What is read is within the bounds, and nothing that Apple has not signed is believed.
enum AttestationsTarget {
    private static let roots = try! TrustedRoots(pem: CertificateAuthority().certificatePEM)

    static func run(_ input: UnsafeRawBufferPointer) throws {
        let bytes = Array(input)
        if let value = CBOR(bytes) {
            var values = 0
            let size = try size(of: value, depth: CBOR.depthMax, &values)
            try promise(size <= bytes.count, "\(size) bytes of \(bytes.count)")
            try promise(values <= CBOR.valuesMax, "\(values) values")
        }
        if let data = AuthenticatorData(bytes) {
            try promise(data.rpIDHash.count == 32, "a hash of \(data.rpIDHash.count) bytes")
            try promise((data.credential?.aaguid.count ?? 16) == 16, "an AAGUID of another size")
        }
        let expected = AttestationVerifier.Expected(
            keyID: [], clientDataHash: [], appID: "", environment: .production)
        var isBelieved = false
        do throws(AttestationFault) {
            _ = try AttestationVerifier(roots: roots).key(
                in: bytes, expected, now: RecordWorld.now)
            isBelieved = true
        } catch {
            try promiseLine(error.detail)
            try promise(error.refusal.status == 403, "a refusal of another status")
        }
        try promise(!isBelieved, "an attestation that Apple has not signed")
        guard let assertion = Assertion(bytes) else { return }
        do throws(AssertionFault) {
            try assertion.verify(key: [4], clientDataHash: [], appID: "")
        } catch { return try promiseLine(error.refusal.detail) }
        throw BrokenPromise(description: "an assertion of no key")
    }

    private static func size(
        of value: CBOR, depth: Int, _ values: inout Int
    ) throws -> Int {
        try promise(depth > 0, "values that are nested too deep")
        values += 1
        switch value {
        case .unsigned, .negative: return 1
        case .bytes(let bytes): return 1 + bytes.count
        case .text(let text): return 1 + text.utf8.count
        case .array(let inner):
            var sum = 1
            for value in inner { sum += try size(of: value, depth: depth - 1, &values) }
            return sum
        case .map(let members):
            var sum = 1
            for (key, value) in members {
                values += 1
                sum += 1 + key.utf8.count
                sum += try size(of: value, depth: depth - 1, &values)
            }
            return sum
        }
    }
}

/// JSON Web Tokens and the keys that verify them. The input: a key set in a line, then tokens, a
/// line each; or claims as JSON, which count as verified.
enum AccessTokensTarget {
    private static let settings = {
        var settings = AccessSettings.JWT(keys: .file(""), issuer: "i", audience: "a")
        settings.appClaim = "app"
        return settings
    }()
    private static let tokensMax = 8

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let keys = try keys(Array(input.line() ?? UnsafeRawBufferPointer(start: nil, count: 0)))
        for _ in 0..<tokensMax {
            guard let line = input.line() else { return }
            var text = String(decoding: line, as: UTF8.self)
            if text.hasPrefix("{") {
                text = "eyJhbGciOiJFUzI1NiJ9.\(Base64URL.encode(Array(text.utf8))).AA"
            }
            do throws(TokenFault) {
                let token = try JSONWebToken(text)
                let candidates = keys?.candidates(id: token.keyID, token.algorithm) ?? []
                for key in candidates {
                    _ = key.verify(token.signed, signature: token.signature)
                }
                try promiseCaller(try token.claims(settings))
            } catch { try promiseRefusal(error.refusal) }
        }
    }

    private static func keys(_ bytes: [UInt8]) throws -> JSONWebKeySet? {
        let set: JSONWebKeySet
        do throws(FileFault) {
            set = try JSONWebKeySet(bytes)
        } catch {
            try promiseLine(error.description)
            return nil
        }
        try promise((1...JSONWebKeySet.keysMax).contains(set.keys.count), "a set of any size")
        return set
    }

    private static func promiseCaller(_ claims: TokenClaims) throws(TokenFault) {
        let id = claims.caller.id
        guard id.utf8.count <= 128, id.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            preconditionFailure("a caller who is not printable")
        }
        try claims.check(RecordWorld.now)
    }

    private static func promiseRefusal(_ refusal: AccessRefusal) throws {
        try promise(refusal.status == 401, "a refusal of another status")
        try promiseLine(refusal.detail)
        try promiseLine(refusal.remedy)
    }
}

/// The value of an `authorization` header. The input: the value.
enum AccessHeadersTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        switch AuthorizationHeader(String(decoding: input, as: UTF8.self)) {
        case .bearer(let token):
            try promise(!token.isEmpty && !token.contains(" "), "a token with spaces")
        case .appAttest(let parameters):
            for value in [parameters.credential, parameters.assertion, parameters.date] {
                try promise(!value.contains("\""), "a value with a quote")
                try promise(value.utf8.allSatisfy { $0 < 0x80 }, "a value that is not ASCII")
            }
        case .other, nil: break
        }
    }
}

/// The files that access is configured with. The input: the file.
enum AccessFilesTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let bytes = Array(input)
        try promiseKeys(bytes)
        try promiseSecrets(bytes)
    }

    private static func promiseKeys(_ bytes: [UInt8]) throws {
        let keys: ServiceKeys
        do throws(FileFault) {
            keys = try ServiceKeys(bytes)
        } catch { return try promiseLine(error.description) }
        try promise(keys.count <= ServiceKeys.keysMax, "\(keys.count) keys")
        try promise(keys.caller(with: "llr_") == nil, "a key that nobody has made")
    }

    private static func promiseSecrets(_ bytes: [UInt8]) throws {
        let secrets: AttestSecrets
        do throws(FileFault) {
            secrets = try AttestSecrets(bytes)
        } catch { return try promiseLine(error.description) }
        let signed = secrets.signed(.challenge, [1, 2, 3])
        try promise(secrets.statement(.challenge, in: signed) == [1, 2, 3], "another statement")
        try promise(secrets.statement(.credential, in: signed) == nil, "another kind")
    }
}
