// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Simdjson

/// The claims of a token whose signature is verified, issuer and audience being right.
struct TokenClaims: Sendable {
    /// Seconds since 1970.
    let expiresAt: Int64
    private let notBefore: Int64?
    private let issuedAt: Int64?
    let caller: Caller

    /// How far clocks may be apart, in seconds.
    static let leeway: Int64 = 60

    init(_ object: JSONObject, _ settings: AccessSettings.JWT) throws(TokenFault) {
        guard object["iss"]?.text == settings.issuer else { throw .issuer }
        guard let audience = object["aud"]?.texts, audience.contains(settings.audience) else {
            throw .audience
        }
        guard let expiry = try Self.time(object["exp"]) else { throw .noExpiry }
        expiresAt = expiry
        notBefore = try Self.time(object["nbf"])
        issuedAt = try Self.time(object["iat"])
        var rights = Rights()
        guard let installations = try Self.texts(object, settings.installationClaim) else {
            throw .noInstallation
        }
        rights.installations = Names(installations)
        if let claim = settings.appClaim {
            guard let apps = try Self.texts(object, claim) else { throw .noApp }
            rights.apps = Names(apps)
        }
        if let prefixes = try Self.texts(object, settings.subjectPrefixesClaim) {
            rights.subjectPrefixes = prefixes.map { Array($0.utf8) }
        } else if settings.requiresSubjectPrefixes {
            throw .noSubjectPrefixes
        }
        let name = object["sub"]?.text ?? installations.first ?? ""
        caller = Caller(id: "jwt:\(name)", rights: rights)
    }

    /// Whether the token is valid now, as far as time goes.
    func check(_ now: WallTime) throws(TokenFault) {
        let seconds = now.seconds
        guard seconds - Self.leeway < expiresAt else { throw .expired }
        if let notBefore, notBefore > seconds + Self.leeway { throw .notYetValid }
        if let issuedAt, issuedAt > seconds + Self.leeway { throw .issuedInFuture }
    }

    /// A NumericDate (RFC 7519, 2): seconds since 1970, maybe with a fraction.
    private static func time(_ value: JSONValue?) throws(TokenFault) -> Int64? {
        guard let value else { return nil }
        // Beyond the year 30,000 nobody means it, and sums could overflow.
        guard let seconds = value.double, seconds.magnitude < 1e12 else { throw .wrongTime }
        return Int64(seconds.rounded(.down))
    }

    /// A claim that is a text or an array of texts; nil if the token has none of this name.
    private static func texts(
        _ object: JSONObject, _ name: String
    ) throws(TokenFault) -> [String]? {
        var found: JSONValue?
        for member in object where member.key.elementsEqual(name.utf8) { found = member.value }
        guard let found else { return nil }
        guard let texts = found.texts else { throw .wrongClaim }
        return texts
    }
}

extension JSONValue {
    /// The text of a string, or those of an array of strings; nil for anything else.
    fileprivate var texts: [String]? {
        if let text { return [text] }
        guard let array else { return nil }
        var texts: [String] = []
        for element in array {
            guard let text = element.text else { return nil }
            texts.append(text)
        }
        return texts
    }
}
