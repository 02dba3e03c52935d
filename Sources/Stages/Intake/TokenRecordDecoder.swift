// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// Whom a record of the verdicts or the deferred topic is about; used again and again.
package struct TokenKey: Sendable, Equatable {
    package var lane = LaneID(rawValue: 0)
    /// Bytes, not hexadecimal.
    package var token: [UInt8] = []
    /// Of a deferred push with a payload; 0 for "look again".
    package var coalescingKey: UInt64 = 0

    package init() {}
}

package enum VerdictField: String, CaseIterable, Sendable {
    case v, status, reason, apnsTimestamp, registeredAt
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
        let fields = MemberReader(object: object)
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
        guard let object = try object(key, value, &tokenKey, isDeferred: true) else { return nil }
        let push = try DeferredPush(MemberReader(object: object))
        guard (tokenKey.coalescingKey == 0) == (push.payload == nil) else {
            throw UnreadableRecord(
                .keyMismatch,
                "the key must have a fourth part where there is a payload, and only there")
        }
        return push
    }

    private mutating func object(
        _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?,
        _ tokenKey: inout TokenKey, isDeferred: Bool = false
    ) throws(UnreadableRecord) -> JSONObject? {
        let parts = try RecordKey.tokenParts(key, isDeferred: isDeferred)
        tokenKey.coalescingKey = parts.coalescingKey
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
}

/// Members by name, null counting as absent.
struct MemberReader {
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

    /// What the writer put under either name; empty where it put nothing.
    func bytes(
        _ name: StaticString, base64: StaticString, bytesMax: Int
    ) throws(UnreadableRecord) -> [UInt8] {
        if let value = optional(name) { return Array(try value.text(name, bytes: 0...bytesMax)) }
        guard let value = optional(base64) else { return [] }
        guard let text = value.string, text.count <= (bytesMax + 2) / 3 * 4,
            let bytes = Base64.decode(text), bytes.count <= bytesMax
        else { throw .field("\(base64)", "base64 of at most \(bytesMax) bytes") }
        return bytes
    }
}
