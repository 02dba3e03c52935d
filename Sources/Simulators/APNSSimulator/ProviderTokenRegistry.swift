// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import OpenSSL
internal import PushModel
internal import Simdjson
internal import Synchronization

/// A provider token whose signature is valid.
struct ProviderToken: Hashable, Sendable {
    /// The position of its key among the simulator's keys.
    let key: Int
    /// The claim `iat`, in seconds since 1970.
    let issuedAt: Int64
}

/// The keys that the simulator knows, shared by all threads. Verifying a signature takes about 100
/// µs, so the result is cached for each text.
final class ProviderTokenRegistry: Sendable {
    struct Key: Sendable {
        let settings: SimulatorKey
        let publicKey: ES256PublicKey
    }

    let keys: [Key]
    private let suppressions = Mutex<[[UInt8]: ProviderToken?]>([:])
    /// The most results in the cache. A team makes one token every 20 minutes; thousands are a
    /// flood of forgeries, and the cache is emptied.
    private static let suppressionsMax = 1024
    /// The longest token that is verified. A real one has less than 300 bytes.
    private static let bytesMax = 2048

    init(_ keys: [SimulatorKey]) throws(ES256Error) {
        var known: [Key] = []
        for key in keys {
            known.append(Key(settings: key, publicKey: try ES256PublicKey(pem: key.publicPEM)))
        }
        self.keys = known
    }

    /// The token in the value of `authorization`; nil if it is malformed, its key is unknown or of
    /// another team, or its signature is invalid.
    func verify(authorization: UnsafeRawBufferPointer) -> ProviderToken? {
        // The value starts with "bearer", in any letter case (RFC 9110), and a space.
        guard authorization.count > 7, authorization.count < Self.bytesMax else { return nil }
        let scheme = authorization.prefix(7).map { $0 | 0x20 }
        guard scheme.elementsEqual("bearer ".utf8) else { return nil }
        let text = Array(authorization.dropFirst(7))
        if let known = suppressions.withLock({ $0[text] }) { return known }
        let suppression = verify(text)
        suppressions.withLock { suppressions in
            if suppressions.count >= Self.suppressionsMax { suppressions.removeAll() }
            suppressions[text] = .some(suppression)
        }
        return suppression
    }

    private func verify(_ text: [UInt8]) -> ProviderToken? {
        let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.decode(parts[0]),
            let claims = Self.decode(parts[1]), let signature = Self.decode(parts[2]),
            let named = Self.header(header), named.algorithm == "ES256",
            let index = keys.firstIndex(where: { $0.settings.keyID == named.keyID }),
            let said = Self.claims(claims), said.teamID == keys[index].settings.teamID
        else { return nil }
        let signed = text[..<parts[1].endIndex]
        guard keys[index].publicKey.verify(signed, signature: signature) else { return nil }
        return ProviderToken(key: index, issuedAt: said.issuedAt)
    }

    /// Padding and the other alphabet are tolerated, as by APNs.
    private static func decode(_ part: ArraySlice<UInt8>) -> [UInt8]? {
        let digits = part.filter { $0 != UInt8(ascii: "=") }.map { digit in
            switch digit {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: digit
            }
        }
        return Base64URL.decode(String(decoding: digits, as: UTF8.self))
    }

    /// The range of `iat`, up to the year 9999, in which an age can be computed.
    private static let secondsRange: ClosedRange<Int64> = 0...253_402_300_799

    private static func header(_ bytes: [UInt8]) -> (algorithm: String, keyID: String)? {
        object(bytes) { object in
            guard let algorithm = object["alg"]?.string, let keyID = object["kid"]?.string else {
                return nil
            }
            return (
                String(decoding: algorithm, as: UTF8.self), String(decoding: keyID, as: UTF8.self)
            )
        }
    }

    private static func claims(_ bytes: [UInt8]) -> (teamID: String, issuedAt: Int64)? {
        object(bytes) { object in
            guard let teamID = object["iss"]?.string, let issuedAt = object["iat"]?.integer,
                secondsRange.contains(issuedAt)
            else { return nil }
            return (String(decoding: teamID, as: UTF8.self), issuedAt)
        }
    }

    private static func object<Result>(
        _ bytes: [UInt8], _ read: (JSONObject) -> Result?
    ) -> Result? {
        var parser = JSONParser(bytesMax: bytesMax, depthMax: 8)
        return bytes.withUnsafeBytes { bytes in
            guard let object = (try? parser.parse(bytes))?.object else { return nil }
            return read(object)
        }
    }
}
