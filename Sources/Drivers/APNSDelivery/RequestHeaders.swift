// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Nghttp2
internal import PushModel

/// The headers that pushes repeat, numbered once for all connections of a delivery thread.
struct RequestConstants: ~Copyable {
    let text: HeaderConstants
    /// Each is the number of the first header of a run: by pool, by route (its `apns-topic`, or of
    /// channels its path), by push type, by priority (0 to 10).
    private let authorities: Int
    private let topics: Int
    private let pushTypes: Int
    private let priorities: Int
    let expirationZero: ConstantHeader
    /// Headers whose values are unique to a push; only their names are constant.
    let apnsID: ConstantHeader
    let requestID: ConstantHeader
    let channelID: ConstantHeader
    let expiration: ConstantHeader
    let collapseID: ConstantHeader
    let authorization: ConstantHeader

    init(plan: DeliveryPlan) {
        var text = HeaderConstants()
        authorities = text.count
        for pool in plan.pools { _ = text.add(":authority", pool.serverName) }
        topics = text.count
        for route in plan.routing.routes {
            if let path = route.broadcastPath(in: plan.routing) {
                _ = text.add(":path", path)
            } else {
                _ = text.add("apns-topic", route.apnsTopic)
            }
        }
        pushTypes = text.count
        for type in PushType.all { _ = text.add("apns-push-type", type.name) }
        priorities = text.count
        for priority in 0...10 { _ = text.add("apns-priority", String(priority)) }
        expirationZero = text.add("apns-expiration", "0")
        apnsID = text.add("apns-id")
        requestID = text.add("apns-request-id")
        channelID = text.add("apns-channel-id")
        expiration = text.add("apns-expiration")
        collapseID = text.add("apns-collapse-id")
        authorization = text.add("authorization")
        self.text = text
    }

    func authority(ofPool pool: Int) -> ConstantHeader {
        assert(
            authorities &+ pool < topics,
            "a pool's number lies within the constants' pools: \(pool)")
        return ConstantHeader(number: authorities &+ pool)
    }

    /// The header that the route decides: `apns-topic`, or of channels `:path`.
    func topic(_ route: RouteID) -> ConstantHeader {
        assert(
            topics &+ Int(route.rawValue) < pushTypes,
            "a route's number lies within the constants' routes: \(route.rawValue)")
        return ConstantHeader(number: topics &+ Int(route.rawValue))
    }

    func pushType(_ type: PushType) -> ConstantHeader {
        assert(
            pushTypes &+ Int(type.rawValue) < priorities,
            "a push type's number lies within the constants' types: \(type.rawValue)")
        return ConstantHeader(number: pushTypes &+ Int(type.rawValue))
    }

    func priority(_ priority: UInt8) -> ConstantHeader {
        precondition(priority <= 10, "an apns-priority is at most 10: \(priority)")
        return ConstantHeader(number: priorities &+ Int(priority))
    }
}

/// The value of the `authorization` header, lent by a `ProviderToken` that must outlive its use.
struct Authorization: BitwiseCopyable {
    let bearer: UnsafeBufferPointer<UInt8>
    let generation: Int

    init(_ token: ProviderToken) {
        bearer = token.bearer
        generation = token.generation
    }
}

/// Composes the header blocks of one connection's pushes: exactly `:method`, `:scheme`,
/// `:authority`, `:path`, `authorization` and the `apns-` headers.
///
/// Headers that repeat are indexed by HPACK, `authorization` included. Of those that are unique
/// to a push only the first of each name is, for the sake of its name: they must not evict the others
/// from APNs's table of 4096 bytes.
struct RequestHeaders: ~Copyable {
    /// Indexes of HPACK's static table (RFC 7541, appendix A).
    private enum StaticIndex {
        static let post = 3
        static let path = 4
        static let https = 7
    }

    private static let pathPrefix: StaticString = "/3/device/"
    /// The size of the buffer for one block. APNs takes 8,000 bytes of headers (its SETTINGS of
    /// 2021). A device token of 512 bytes, the longest that a registration may hold, takes 1 KiB of
    /// them, and a provider token 250 bytes.
    private static let blockBytesMax = 8192

    private var encoder: HPACKEncoder
    /// Whether the connection carries broadcasts to channels, whose headers are others.
    private let isForBroadcasts: Bool
    /// The generation of the provider token that is in the HPACK table.
    private var tokenGeneration = -1
    /// Room for the decimal digits of `apns-expiration` (19 at most) and for `apns-id`.
    private let scratch: UnsafeMutablePointer<UInt8>
    private static let scratchBytes = 40

    init(constants: borrowing RequestConstants, isForBroadcasts: Bool) {
        self.isForBroadcasts = isForBroadcasts
        encoder = HPACKEncoder(constants: constants.text.count, blockBytesMax: Self.blockBytesMax)
        precondition(
            APNSID.textBytes <= Self.scratchBytes, "the scratch memory has room for an apns-id")
        scratch = .allocate(capacity: Self.scratchBytes)
    }

    deinit { scratch.deallocate() }

    mutating func tableLimitChanged(to announced: UInt32) {
        encoder.tableLimitChanged(to: announced)
    }

    /// The header block of one push; valid until the next call.
    mutating func compose(
        _ push: UnsafePointer<WirePush>, token: UnsafeBufferPointer<UInt8>, pool: Int,
        authorization: Authorization, constants: borrowing RequestConstants
    ) -> UnsafeRawBufferPointer {
        if isForBroadcasts {
            return composeBroadcast(
                push, channel: token, pool: pool, authorization: authorization,
                constants: constants)
        }
        encoder.begin()
        encoder.append(staticIndex: StaticIndex.post)
        encoder.append(staticIndex: StaticIndex.https)
        encoder.append(constants.authority(ofPool: pool), of: constants.text)
        appendPath(token)
        appendAuthorization(authorization, constants)
        encoder.append(constants.pushType(push.pointee.type), of: constants.text)
        encoder.append(constants.topic(push.pointee.route), of: constants.text)
        if push.pointee.apnsID != .none { appendID(push, named: constants.apnsID, constants) }
        appendOptional(push, constants)
        if let collapseID = push.pointee.collapseID {
            let value = UnsafeBufferPointer(
                start: collapseID, count: Int(push.pointee.collapseIDBytes))
            encoder.append(unique: value, named: constants.collapseID, of: constants.text)
        }
        return encoder.bytes
    }

    /// The header block of a broadcast: its path has the bundle identifier and no channel, it has no
    /// `apns-topic` and no `apns-collapse-id`, and its ID is that of a request.
    @inline(never)
    private mutating func composeBroadcast(
        _ push: UnsafePointer<WirePush>, channel: UnsafeBufferPointer<UInt8>, pool: Int,
        authorization: Authorization, constants: borrowing RequestConstants
    ) -> UnsafeRawBufferPointer {
        encoder.begin()
        encoder.append(staticIndex: StaticIndex.post)
        encoder.append(staticIndex: StaticIndex.https)
        encoder.append(constants.authority(ofPool: pool), of: constants.text)
        encoder.append(constants.topic(push.pointee.route), of: constants.text)
        appendAuthorization(authorization, constants)
        encoder.append(constants.pushType(push.pointee.type), of: constants.text)
        var base64 = Base64.encode(Array(channel))
        base64.withUTF8 {
            encoder.append(unique: $0, named: constants.channelID, of: constants.text)
        }
        if push.pointee.apnsID != .none { appendID(push, named: constants.requestID, constants) }
        appendOptional(push, constants)
        return encoder.bytes
    }

    private mutating func appendPath(_ token: UnsafeBufferPointer<UInt8>) {
        let prefixBytes = Self.pathPrefix.utf8CodeUnitCount
        let path = encoder.appendUnique(
            staticName: StaticIndex.path, count: prefixBytes &+ 2 &* token.count)
        path.update(from: Self.pathPrefix.utf8Start, count: prefixBytes)
        Hexadecimal.encode(token, to: path + prefixBytes)
    }

    private mutating func appendAuthorization(
        _ token: Authorization, _ constants: borrowing RequestConstants
    ) {
        if token.generation != tokenGeneration {
            encoder.forget(constants.authorization)
            tokenGeneration = token.generation
        }
        encoder.append(
            repeated: token.bearer, named: constants.authorization, of: constants.text)
    }

    private mutating func appendID(
        _ push: UnsafePointer<WirePush>, named name: ConstantHeader,
        _ constants: borrowing RequestConstants
    ) {
        push.pointee.apnsID.write(to: scratch)
        encoder.append(
            unique: UnsafeBufferPointer(start: scratch, count: APNSID.textBytes), named: name,
            of: constants.text)
    }

    private mutating func appendOptional(
        _ push: UnsafePointer<WirePush>, _ constants: borrowing RequestConstants
    ) {
        if push.pointee.priority != 0 {
            encoder.append(constants.priority(push.pointee.priority), of: constants.text)
        }
        if push.pointee.expiration == 0 {
            encoder.append(constants.expirationZero, of: constants.text)
        } else if push.pointee.expiration > 0 {
            encoder.append(
                unique: decimal(push.pointee.expiration), named: constants.expiration,
                of: constants.text)
        }
    }

    private func decimal(_ value: Int64) -> UnsafeBufferPointer<UInt8> {
        assert(value > 0, "an apns-expiration is above 0 here: that of 0 has a constant header")
        var rest = UInt64(value)
        var start = Self.scratchBytes
        repeat {
            start &-= 1
            scratch[start] = 0x30 &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        return UnsafeBufferPointer(start: scratch + start, count: Self.scratchBytes &- start)
    }
}
