// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// A JSON Web Token (RFC 7519) in the compact form of RFC 7515, taken apart and not yet verified.
struct JSONWebToken {
    static let bytesMax = 8192

    let algorithm: SignatureAlgorithm
    let keyID: String?
    /// What the signature is over.
    let signed: [UInt8]
    let signature: [UInt8]
    private let payload: [UInt8]

    init(_ text: String) throws(TokenFault) {
        guard text.utf8.count <= Self.bytesMax else { throw .tooLarge }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Base64URL.decode(parts[0]),
            let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2])
        else { throw .malformed }
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 8)
        let read = header.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object.map { object in
                (
                    algorithm: object["alg"]?.text, keyID: object["kid"],
                    keyText: object["kid"]?.text, isCritical: object["crit"] != nil
                )
            }
        }
        guard let read else { throw .malformed }
        // An extension that must be understood, and is not.
        guard !read.isCritical else { throw .critical }
        guard let algorithm = read.algorithm.flatMap(SignatureAlgorithm.init(rawValue:)) else {
            throw .algorithm
        }
        guard read.keyID == nil || read.keyText != nil else { throw .malformed }
        self.algorithm = algorithm
        keyID = read.keyText
        signed = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
        self.signature = signature
        self.payload = payload
        assert(
            signed.count + 1 + parts[2].utf8.count == text.utf8.count,
            "what is signed is all of the token before its last dot")
    }

    /// The claims, which are worth something once the signature is verified.
    func claims(_ settings: AccessSettings.JWT) throws(TokenFault) -> TokenClaims {
        var parser = JSONParser(bytesMax: Self.bytesMax, depthMax: 16)
        let read = payload.withUnsafeBytes { bytes -> Result<TokenClaims, TokenFault> in
            guard let object = (try? parser.parse(bytes))?.object else {
                return .failure(.malformed)
            }
            return Result { () throws(TokenFault) in try TokenClaims(object, settings) }
        }
        return try read.get()
    }
}

/// What is wrong with a token.
enum TokenFault: Error, Hashable, Sendable, CaseIterable {
    case tooLarge, malformed, critical, algorithm, unknownKey, signature
    case issuer, audience, noExpiry, expired, notYetValid, issuedInFuture, wrongTime
    case noInstallation, noApp, noSubjectPrefixes, wrongClaim

    /// A sentence without anything of the token.
    var detail: String {
        switch self {
        case .tooLarge: "The token has more than \(JSONWebToken.bytesMax) bytes."
        case .malformed: "The token is not a JSON Web Token in compact form."
        case .critical: "The token's header has crit, and no extension is understood."
        case .algorithm: "The token's algorithm is neither ES256 nor RS256."
        case .unknownKey: "No key of the issuer's key set has the token's kid and algorithm."
        case .signature: "The token's signature is wrong."
        case .issuer: "The token's iss is not the issuer that the registrar knows."
        case .audience: "The token's aud does not name the registrar."
        case .noExpiry: "The token has no exp."
        case .expired: "The token has expired."
        case .notYetValid: "The token's nbf is in the future."
        case .issuedInFuture: "The token's iat is in the future."
        case .wrongTime: "One of the token's exp, nbf and iat is not a number of seconds."
        case .noInstallation: "The token names no installation."
        case .noApp: "The token names no app."
        case .noSubjectPrefixes: "The token names no subject prefixes."
        case .wrongClaim: "A claim about installation, app or subjects is no text or list of texts."
        }
    }

    var remedy: String {
        switch self {
        case .expired: "Get a new token."
        case .unknownKey:
            "If the key is new, try again in 30 seconds: the key set is being fetched."
        case .notYetValid, .issuedInFuture: "Check the clocks of the issuer and of the registrar."
        case .noInstallation, .noApp, .noSubjectPrefixes, .wrongClaim, .issuer, .audience:
            "Have the issuer set the claims that the registrar's operator has configured."
        default: "Send a token of the issuer that the registrar's operator has configured."
        }
    }

    var problem: AccessRefusal.Problem {
        switch self {
        case .expired: .tokenExpired
        case .unknownKey: .tokenKeyUnknown
        default: .tokenRefused
        }
    }

    var refusal: AccessRefusal { AccessRefusal(problem, detail, remedy: remedy) }
}
