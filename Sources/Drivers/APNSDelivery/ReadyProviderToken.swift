// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// A provider token that another service has signed, so that this process has no key. Its form is
/// checked; its signature is not, since only the public key could do that, and APNs does.
package struct ReadyProviderToken: Sendable {
    /// The most bytes that are read. A token of Apple's form has about 230.
    package static let bytesMax = 4096

    package let teamID: String
    package let keyID: String
    /// Its `iat`.
    package let issuedAt: WallTime
    let jwt: [UInt8]

    /// - Throws: what is wrong with the text, which is not quoted.
    package init(_ text: String) throws(ProviderTokenError) {
        let size = text.utf8.count
        guard size <= Self.bytesMax else {
            throw .ready("it has \(size) bytes, and a provider token fewer than \(Self.bytesMax)")
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else {
            throw .ready(
                "it is no JSON Web Token: it has \(parts.count - 1) dots, and must have two")
        }
        let decoded = parts.compactMap { Base64URL.decode($0) }
        // ES256 signatures are two numbers of 32 bytes each (RFC 7518, 3.4).
        guard decoded.count == 3, decoded[2].count == 64 else {
            throw .ready("it is no JSON Web Token in compact form with a signature of 64 bytes")
        }
        let header = try Self.members(decoded[0], "header")
        let claims = try Self.members(decoded[1], "claims")
        guard header.algorithm == "ES256" else {
            throw .ready("its alg is not ES256, the only one that APNs takes")
        }
        keyID = try Self.identifier(header.keyID, "kid")
        teamID = try Self.identifier(claims.issuer, "iss")
        // The year 3000: no later second could be added to another time by mistake.
        guard let seconds = claims.issuedAt, (0...32_503_680_000).contains(seconds) else {
            throw .ready("its iat is missing, or is no whole number of seconds since 1970")
        }
        issuedAt = WallTime(milliseconds: seconds * 1000)
        jwt = Array(text.utf8)
    }

    /// How old it is; negative if its `iat` is ahead of the wall clock.
    package func age(at now: Now) -> Duration { now.wall - issuedAt }

    /// Identifies its key within the process, as the number of a signing key does: a connection may
    /// be shown several tokens of one key. It is above the numbers of the keys that are in a file.
    var keyNumber: Int {
        var hash = StableHash()
        for text in [teamID, keyID] {
            Array(text.utf8).withUnsafeBytes { hash.combine($0) }
        }
        return Int(hash.finish().high >> 2) | 1 << 62
    }

    private struct Members {
        var algorithm: String?
        var keyID: String?
        var issuer: String?
        var issuedAt: Int64?
    }

    private static func members(
        _ bytes: [UInt8], _ part: String
    ) throws(ProviderTokenError) -> Members {
        var parser = JSONParser(bytesMax: bytesMax, depthMax: 8)
        let members = bytes.withUnsafeBytes { bytes -> Members? in
            guard let object = (try? parser.parse(bytes))?.object else { return nil }
            return Members(
                algorithm: text(object["alg"]), keyID: text(object["kid"]),
                issuer: text(object["iss"]), issuedAt: object["iat"]?.integer)
        }
        guard let members else { throw .ready("its \(part) part is no JSON object") }
        return members
    }

    private static func text(_ value: JSONValue?) -> String? {
        value?.string.flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func identifier(
        _ text: String?, _ name: String
    ) throws(ProviderTokenError) -> String {
        guard let text, SigningKey.isIdentifier(text) else {
            throw .ready("its \(name) is missing, or is not 1 to 32 letters and digits")
        }
        return text
    }
}
