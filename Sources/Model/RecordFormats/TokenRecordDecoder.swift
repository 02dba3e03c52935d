// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// The decoded key of a record of the suppressions or the deferred topic; a buffer that is reused.
package struct TokenKey: Sendable, Equatable {
    package var route = RouteID(rawValue: 0)
    /// The device token as bytes, not hexadecimal.
    package var token: [UInt8] = []
    /// The coalescing key of a deferred push with a payload; 0 for "look again".
    package var coalescingKey: UInt64 = 0

    package init() {}
}

/// Reads records of the two topics whose key is a token; the formats of their values are in
/// SuppressionFormat.swift and DeferredFormat.swift.
package struct TokenRecordDecoder: ~Copyable {
    private let routes: RouteDirectory
    private var parser: JSONParser

    package init(routing: RoutingTable) {
        routes = RouteDirectory(routing)
        // Room for a body of 5 KiB, the largest there is, however it is escaped.
        parser = JSONParser(bytesMax: 64 << 10)
    }

    /// Decodes the key into `tokenKey` and returns the value's object; nil for a tombstone.
    /// - Throws: also `UnreadableRecord.leftOut`.
    mutating func object(
        _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?,
        _ tokenKey: inout TokenKey, isDeferred: Bool = false
    ) throws(UnreadableRecord) -> JSONObject? {
        if value == nil, ProbeRecord.hasKey(key) { throw UnreadableRecord.leftOut }
        let parts = try RecordKey.tokenParts(key, isDeferred: isDeferred)
        tokenKey.coalescingKey = parts.coalescingKey
        tokenKey.route = try routes.route(
            environment: parts.environment, apnsTopic: parts.apnsTopic)
        tokenKey.token.removeAll(keepingCapacity: true)
        tokenKey.token.append(contentsOf: repeatElement(0, count: parts.token.count / 2))
        let count = tokenKey.token.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { Hexadecimal.decode(parts.token, to: $0) }
        }
        guard count != nil else {
            throw UnreadableRecord(.invalidKey, "the token must be hexadecimal of even length")
        }
        assert(count == tokenKey.token.count, "a token has as many bytes as its key names")
        guard let value else { return nil }
        guard value.count > 0 else {
            throw UnreadableRecord(.emptyValue, "zero length; only a tombstone revokes")
        }
        return try parser.object(value)
    }
}
