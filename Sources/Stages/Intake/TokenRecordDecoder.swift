// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// Whom a record of the verdicts or the deferred topic is about; used again and again.
package struct TokenKey: Sendable, Equatable {
    package var lane = LaneID(rawValue: 0)
    /// Bytes, not hexadecimal.
    package var token: [UInt8] = []

    package init() {}
}

package enum VerdictField: String, CaseIterable, Sendable {
    case v, status, reason, apnsTimestamp, registeredAt
}

package enum DeferredField: String, CaseIterable, Sendable {
    case v, notBefore, expiresAt
    case tokenClass = "class"
    case lastSentAt, attempts, payload
}

/// A push that waits longer than it may hold an offset: the value of a record of `deferred`.
package struct DeferredPush: Sendable, Equatable {
    package var notBefore: WallTime
    package var expiresAt: WallTime
    package var tokenClass: TokenClass
    /// When the token was last sent a push, for its gap.
    package var lastSentAt: WallTime?
    package var attempts: Int
    /// The JSON body, minified; nil for "look again".
    package var payload: [UInt8]?

    package init(
        notBefore: WallTime, expiresAt: WallTime, tokenClass: TokenClass, lastSentAt: WallTime?,
        attempts: Int, payload: [UInt8]?
    ) {
        self.notBefore = notBefore
        self.expiresAt = expiresAt
        self.tokenClass = tokenClass
        self.lastSentAt = lastSentAt
        self.attempts = attempts
        self.payload = payload
    }
}

/// Reads records of the two topics whose key is a token.
package struct TokenRecordDecoder: ~Copyable {
    private let routes: RouteDirectory
    private var parser: JSONParser

    package init(routing: RoutingTable) {
        routes = RouteDirectory(routing)
        // A body of 5 KiB at most, however it is escaped.
        parser = JSONParser(bytesMax: 64 << 10)
    }

    /// Nil revokes what was known against the token.
    package mutating func verdict(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, into tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> Verdict? {
        guard let object = try object(key, value, &tokenKey) else { return nil }
        let fields = Fields(object: object)
        let reason = try fields.required("reason")
        return Verdict(
            status: UInt16(try fields.required("status").integer("status", in: 100...599)),
            reason: String(try reason.text("reason", bytes: 1...RecordLimits.reasonBytesMax)),
            apnsTimestamp: try fields.instant("apnsTimestamp"),
            registeredAt: try fields.required("registeredAt").instant("registeredAt"))
    }

    /// Nil says that the push waits no longer.
    package mutating func deferred(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, into tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> DeferredPush? {
        guard let object = try object(key, value, &tokenKey) else { return nil }
        let fields = Fields(object: object)
        let word = try fields.required("class")
        guard let tokenClass = word.string.flatMap(TokenClass.init) else {
            throw .field("class", "a class of token")
        }
        return DeferredPush(
            notBefore: try fields.required("notBefore").instant("notBefore"),
            expiresAt: try fields.required("expiresAt").instant("expiresAt"),
            tokenClass: tokenClass, lastSentAt: try fields.instant("lastSentAt"),
            attempts: Int(try fields.required("attempts").integer("attempts", in: 0...1_000_000)),
            payload: try fields.optional("payload").map(Self.body))
    }

    private mutating func object(
        _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?, _ tokenKey: inout TokenKey
    ) throws(UnreadableRecord) -> JSONObject? {
        let parts = try RecordKey.tokenParts(key)
        tokenKey.lane = try routes.lane(environment: parts.environment, apnsTopic: parts.apnsTopic)
        tokenKey.token.removeAll(keepingCapacity: true)
        tokenKey.token.append(contentsOf: repeatElement(0, count: parts.token.count / 2))
        let count = tokenKey.token.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { Hexadecimal.decode(parts.token, to: $0) }
        }
        guard count != nil else {
            throw UnreadableRecord(.invalidKey, "the token must be hexadecimal of even length")
        }
        guard let value else { return nil }
        guard value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "zero length; only null revokes")
        }
        let object = try parser.object(value)
        guard let version = object["v"] else { throw .missing("v", "write 1") }
        try version.checkVersion()
        return object
    }

    private static func body(_ value: JSONValue) throws(UnreadableRecord) -> [UInt8] {
        guard value.object != nil else { throw .field("payload", "an object") }
        var body: [UInt8] = []
        let bytesMax = PushType.all.map(\.bodyBytesMax).max()!
        guard value.minify(into: &body, bytesMax: bytesMax) else {
            throw UnreadableRecord(.payloadTooLarge, "payload is over \(bytesMax) bytes")
        }
        return body
    }

    /// Members by name, null counting as absent.
    private struct Fields {
        let object: JSONObject

        func optional(_ name: StaticString) -> JSONValue? {
            guard let value = object[name], !value.isNull else { return nil }
            return value
        }

        func required(_ name: StaticString) throws(UnreadableRecord) -> JSONValue {
            guard let value = optional(name) else { throw .missing("\(name)", "it is required") }
            return value
        }

        func instant(_ name: StaticString) throws(UnreadableRecord) -> WallTime? {
            guard let value = optional(name) else { return nil }
            return try value.instant(name)
        }
    }
}
