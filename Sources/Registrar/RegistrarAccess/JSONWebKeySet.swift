// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Simdjson

/// The signature algorithms that are accepted (RFC 7518, 3.1). Neither `none` nor one with a shared
/// secret is among them.
enum SignatureAlgorithm: String, Sendable, CaseIterable {
    case es256 = "ES256"
    case rs256 = "RS256"
}

/// A public key that verifies tokens.
struct VerificationKey: Sendable {
    private enum Key: Sendable {
        case es256(ES256PublicKey)
        case rs256(RS256PublicKey)
    }

    let id: String?
    private let key: Key

    var algorithm: SignatureAlgorithm {
        switch key {
        case .es256: .es256
        case .rs256: .rs256
        }
    }

    func verify(_ message: [UInt8], signature: [UInt8]) -> Bool {
        switch key {
        // A signature in a token is r and s (RFC 7518, 3.4), never DER.
        case .es256(let key): signature.count == 64 && key.verify(message, signature: signature)
        case .rs256(let key): key.verify(message, signature: signature)
        }
    }
}

extension VerificationKey {
    /// Nil for a key that is not one for ES256 or RS256, or not for signatures.
    init?(_ object: JSONObject) {
        guard let use = object["use"].map(\.text) ?? "sig", use == "sig",
            Self.verifies(object["key_ops"])
        else { return nil }
        switch object["kty"]?.text {
        case "EC":
            guard object["crv"]?.text == "P-256", let x = object["x"]?.base64URL, x.count == 32,
                let y = object["y"]?.base64URL, y.count == 32,
                let read = try? ES256PublicKey(point: [4] + x + y)
            else { return nil }
            key = .es256(read)
        case "RSA":
            guard let modulus = object["n"]?.base64URL, let exponent = object["e"]?.base64URL,
                let read = try? RS256PublicKey(modulus: modulus, exponent: exponent)
            else { return nil }
            key = .rs256(read)
        default: return nil
        }
        let kid = object["kid"]
        id = kid?.text
        guard kid == nil || id != nil else { return nil }
        if let named = object["alg"], named.text != algorithm.rawValue { return nil }
    }

    private static func verifies(_ operations: JSONValue?) -> Bool {
        guard let operations else { return true }
        return operations.array?.contains { $0.text == "verify" } ?? false
    }
}

/// The keys of a JSON Web Key Set (RFC 7517, 5) that verify tokens.
struct JSONWebKeySet: Sendable {
    static let bytesMax = 256 << 10
    static let keysMax = 100

    let keys: [VerificationKey]
    /// How many keys of the set are of other kinds or damaged. They are passed over, as RFC 7517
    /// asks for.
    let passedOver: Int

    /// - Throws: what is wrong with the set as a whole.
    init(_ bytes: [UInt8]) throws(FileFault) {
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 8)
        let read = bytes.withUnsafeBytes { bytes -> (keys: [VerificationKey], count: Int)? in
            guard let members = (try? parser.parse(bytes))?.object?["keys"]?.array else {
                return nil
            }
            var keys: [VerificationKey] = []
            var count = 0
            for member in members {
                count += 1
                guard count <= Self.keysMax else { break }
                if let key = member.object.flatMap({ VerificationKey($0) }) { keys.append(key) }
            }
            return (keys, count)
        }
        guard let read else { throw FileFault("is not a JSON Web Key Set") }
        guard read.count <= Self.keysMax else {
            throw FileFault("has more than \(Self.keysMax) keys")
        }
        guard !read.keys.isEmpty else {
            throw FileFault("has no key for ES256 or RS256 (P-256, or RSA of 2048 to 8192 bits)")
        }
        keys = read.keys
        passedOver = read.count - read.keys.count
    }

    /// The keys that may have signed a token. One without a key ID is tried only while it is clear
    /// which key is meant.
    func candidates(id: String?, _ algorithm: SignatureAlgorithm) -> [VerificationKey] {
        let fitting = keys.filter { $0.algorithm == algorithm }
        guard let id else { return fitting.count == 1 ? fitting : [] }
        return fitting.filter { $0.id == id }
    }
}

extension JSONValue {
    /// The text of a string.
    var text: String? { string.flatMap { String(validating: $0, as: UTF8.self) } }

    var base64URL: [UInt8]? { text.flatMap { Base64URL.decode($0) } }
}
