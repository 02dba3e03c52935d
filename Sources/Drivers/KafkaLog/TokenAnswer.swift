// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Simdjson

/// The JSON of a token endpoint (RFC 6749, sections 5.1 and 5.2), as far as it is in order.
struct TokenAnswer {
    /// A token of the characters that RFC 6750, section 2.1, has for it: any other could not be
    /// shown to a broker, and librdkafka would quote it where it says so.
    let accessToken: String?
    /// Milliseconds.
    let life: Int64?
    /// The code of an error; nobody's free text.
    let error: String?

    /// Tokens of some kilobytes are common; Kafka's brokers refuse a SASL message beyond 512 KiB.
    private static let tokenBytesMax = 32_768

    /// Nil for what is no JSON object.
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

/// What a JSON Web Token says of itself. Its signature is the brokers' to verify.
struct TokenClaims {
    /// Not empty, without control characters.
    let subject: String
    /// Milliseconds since 1970.
    let expiresAt: Int64?

    private static let subjectBytesMax = 256

    /// Nil for any other kind of token, and for one without a subject.
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
    /// Nil for anything but a string of at most so many bytes.
    fileprivate func text(bytesMax: Int) -> String? {
        guard let bytes = string, bytes.count <= bytesMax else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Of a number of seconds that is no nonsense: below 2^40, which is 35,000 years.
    fileprivate var milliseconds: Int64? {
        guard let seconds = double, seconds.magnitude < Double(1 << 40) else { return nil }
        return Int64(seconds * 1000)
    }
}
