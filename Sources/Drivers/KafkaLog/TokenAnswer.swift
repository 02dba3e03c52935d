// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Simdjson

/// The valid parts of a token endpoint's JSON answer (RFC 6749, sections 5.1 and 5.2).
struct TokenAnswer {
    /// The token; nil if it has characters that RFC 6750, section 2.1, does not allow. librdkafka
    /// could not send such a token, and would quote it in its error.
    let accessToken: String?
    /// How long the token is valid, in milliseconds.
    let life: Int64?
    /// The error code, never the endpoint's free text.
    let error: String?

    /// The largest token accepted. Tokens of some kilobytes are common, and brokers refuse a SASL
    /// message beyond 512 KiB.
    private static let tokenBytesMax = 32_768

    /// Parses the body of an answer; nil if it is not a JSON object.
    init?(_ body: [UInt8]) {
        var parser = JSONParser()
        let read = body.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object.map { object in
                (
                    token: object["access_token"]?.text(bytesMax: Self.tokenBytesMax),
                    life: object["expires_in"]?.milliseconds,
                    error: object["error"]?.text(bytesMax: 64)
                )
            }
        }
        guard let read else { return nil }
        life = read.life.flatMap { $0 > 0 ? $0 : nil }
        accessToken = read.token.flatMap {
            $0.wholeMatch(of: /[A-Za-z0-9\-._~+\/]+=*/) == nil ? nil : $0
        }
        error = read.error.flatMap {
            $0.wholeMatch(of: /[A-Za-z0-9_.\-]+/) == nil ? nil : $0
        }
    }
}

/// The claims of a JSON Web Token. Its signature is not verified here; brokers do that.
struct TokenClaims {
    /// The subject: not empty, without control characters.
    let subject: String
    /// When the token expires, in milliseconds since 1970; nil if the token does not say.
    let expiresAt: Int64?

    private static let subjectBytesMax = 256

    /// Reads the claims of a token; nil if it is not a JSON Web Token with a subject.
    init?(of token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Self.base64URL(parts[1]) else { return nil }
        var parser = JSONParser()
        let read = payload.withUnsafeBytes { bytes in
            (try? parser.parse(bytes))?.object.map { object in
                (
                    subject: object["sub"]?.text(bytesMax: Self.subjectBytesMax),
                    expiresAt: object["exp"]?.milliseconds
                )
            }
        }
        guard let read, let subject = read.subject, !subject.isEmpty,
            subject.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { return nil }
        self.subject = subject
        expiresAt = read.expiresAt
    }

    private static func base64URL(_ text: Substring) -> Data? {
        var plain = text.replacing("-", with: "+").replacing("_", with: "/")
        plain += String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
        return Data(base64Encoded: String(plain))
    }
}

extension JSONValue {
    /// The text of a string of at most this many bytes; otherwise nil.
    fileprivate func text(bytesMax: Int) -> String? {
        guard let bytes = string, bytes.count <= bytesMax else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A number of seconds as milliseconds; nil unless its magnitude is below 2^40 s, which is
    /// 35,000 years.
    fileprivate var milliseconds: Int64? {
        guard let seconds = double, seconds.magnitude < Double(1 << 40) else { return nil }
        return Int64(seconds * 1000)
    }
}
