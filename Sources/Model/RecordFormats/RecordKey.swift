// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// The keys of compacted topics: parts of 1 to 128 of the characters `A-Z a-z 0-9 . _ ~ -` with
/// slashes between them.
package enum RecordKey {
    /// Whether `text` may be a part of a key.
    package static func isPart(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { isPart(UnsafeRawBufferPointer($0)) }
    }

    package static func isPart(_ text: UnsafeRawBufferPointer) -> Bool {
        isPart(text, bytesMax: partBytesMax)
    }

    /// What a part of a key must be.
    package static var partDemand: String {
        "1 to \(RecordLimits.keyPartBytesMax) of the characters A-Z a-z 0-9 . _ ~ -"
    }

    /// `environment/app/installation/handler`. The parts must be valid ones.
    package static func registration(
        environment: PushEnvironment, app: String, installation: String, handler: String
    ) -> [UInt8] {
        precondition(
            isPart(app) && isPart(installation) && isPart(handler),
            "each part of the key is valid by itself")
        return Array("\(environment.name)/\(app)/\(installation)/\(handler)".utf8)
    }

    /// `environment/apnsTopic/tokenHex`: the keys of suppressions, and of deferred pushes that say
    /// "look again".
    package static func token(route: Route, token: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        precondition(
            (1...RecordLimits.tokenBytesMax).contains(token.count),
            "a token has 1 to tokenBytesMax bytes")
        return Array(
            "\(route.environment.name)/\(route.apnsTopic)/\(Hexadecimal.encode(token))".utf8)
    }

    /// The key of a deferred push. One with a payload has a fourth part, its coalescing key in 16
    /// digits: a token may have several that are all owed, and compaction must keep each.
    package static func deferred(
        route: Route, token: UnsafeBufferPointer<UInt8>, coalescingKey: UInt64
    ) -> [UInt8] {
        let key = self.token(route: route, token: token)
        if coalescingKey == 0 { return key }
        let digits = withUnsafeBytes(of: coalescingKey.bigEndian) { Hexadecimal.encode($0) }
        assert(digits.utf8.count == 16, "a coalescing key is written with 16 digits")
        return key + [UInt8(ascii: "/")] + Array(digits.utf8)
    }

    // MARK: Reading

    static let partBytesMax = RecordLimits.keyPartBytesMax

    struct RegistrationParts {
        let environment: PushEnvironment
        /// The key from its first slash on.
        let afterEnvironment: UnsafeRawBufferPointer
        let app: UnsafeRawBufferPointer
        let installation: UnsafeRawBufferPointer
        let handler: UnsafeRawBufferPointer
    }

    static func registrationParts(
        _ key: UnsafeRawBufferPointer?
    ) throws(UnreadableRecord) -> RegistrationParts {
        var rest = PartReader(key)
        guard let environment = rest.next(bytesMax: partBytesMax).flatMap(PushEnvironment.init),
            let app = rest.next(bytesMax: partBytesMax),
            let installation = rest.next(bytesMax: partBytesMax),
            let handler = rest.next(bytesMax: partBytesMax), rest.isAtEnd
        else {
            throw UnreadableRecord(
                .invalidKey, "the key must be environment/app/installation/handler")
        }
        let count = app.count + installation.count + handler.count + 3
        assert(key!.count > count, "the key is longer than the parts read so far")
        return RegistrationParts(
            environment: environment,
            afterEnvironment: UnsafeRawBufferPointer(rebasing: key!.suffix(count)),
            app: app, installation: installation, handler: handler)
    }

    /// The parts of a registration's key as text; nil if it is not one.
    package static func names(
        ofRegistration key: UnsafeRawBufferPointer?
    ) -> (environment: PushEnvironment, app: String, installation: String, handler: String)? {
        guard let parts = try? registrationParts(key) else { return nil }
        return (
            parts.environment, String(parts.app), String(parts.installation), String(parts.handler)
        )
    }

    struct TokenParts {
        let environment: PushEnvironment
        let apnsTopic: UnsafeRawBufferPointer
        /// The token in hexadecimal, not yet validated.
        let token: UnsafeRawBufferPointer
        let coalescingKey: UInt64
    }

    /// - Parameter isDeferred: a fourth part, the coalescing key, may follow.
    static func tokenParts(
        _ key: UnsafeRawBufferPointer?, isDeferred: Bool
    ) throws(UnreadableRecord) -> TokenParts {
        var rest = PartReader(key)
        guard let environment = rest.next(bytesMax: partBytesMax).flatMap(PushEnvironment.init),
            let apnsTopic = rest.next(bytesMax: RecordLimits.apnsTopicBytesMax),
            let token = rest.next(bytesMax: 2 * RecordLimits.tokenBytesMax),
            let coalescingKey = isDeferred ? rest.coalescingKey() : 0, rest.isAtEnd
        else {
            throw UnreadableRecord(
                .invalidKey,
                isDeferred
                    ? "the key must be environment/apnsTopic/tokenHex, or have 16 digits more"
                    : "the key must be environment/apnsTopic/tokenHex")
        }
        return TokenParts(
            environment: environment, apnsTopic: apnsTopic, token: token,
            coalescingKey: coalescingKey)
    }

    private struct PartReader {
        private var rest: UnsafeRawBufferPointer
        private(set) var isAtEnd = false

        init(_ key: UnsafeRawBufferPointer?) {
            rest = key ?? UnsafeRawBufferPointer(start: nil, count: 0)
        }

        /// The coalescing key of a deferred push: 0 where no part is left, nil where the part is
        /// not 16 hexadecimal digits or says 0.
        mutating func coalescingKey() -> UInt64? {
            if isAtEnd { return 0 }
            guard let digits = next(bytesMax: 16), digits.count == 16 else { return nil }
            let key = UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
            return key == 0 ? nil : key
        }

        mutating func next(bytesMax: Int) -> UnsafeRawBufferPointer? {
            guard !isAtEnd else { return nil }
            var end = 0
            while end < rest.count, RecordKey.isPartByte(rest[end]) { end += 1 }
            guard end > 0, end <= bytesMax else { return nil }
            let part = UnsafeRawBufferPointer(rebasing: rest[..<end])
            if end == rest.count {
                isAtEnd = true
            } else {
                guard rest[end] == UInt8(ascii: "/") else { return nil }
                rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
            }
            return part
        }
    }

    private static func isPart(_ bytes: UnsafeRawBufferPointer, bytesMax: Int) -> Bool {
        (1...bytesMax).contains(bytes.count) && bytes.allSatisfy(isPartByte)
    }

    private static func isPartByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
