// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import PushModel

/// Composes the target and the headers of a push for libcurl: exactly those that `RequestHeaders`
/// composes for nghttp2.
struct CurlRequest: ~Copyable {
    private static let pathPrefix: StaticString = "/3/device/"
    private static let decimals = (0...10).map { Array(String($0).utf8) }

    private let topics: [[UInt8]]
    private let pushTypes: [[UInt8]]
    private let apnsID: UnsafeMutablePointer<UInt8>
    /// The scratch for a request's path, which libcurl takes terminated by a zero byte.
    private var path: UnsafeMutableBufferPointer<UInt8>

    init(plan: DeliveryPlan) {
        topics = plan.routing.routes.map { Array($0.apnsTopic.utf8) }
        pushTypes = PushType.all.map { Array($0.name.utf8) }
        apnsID = .allocate(capacity: APNSID.textBytes)
        path = .allocate(capacity: 0)
        growPath(tokenBytes: PushSlab.inlineTokenBytes)
    }

    deinit {
        apnsID.deallocate()
        path.deallocate()
    }

    /// Fills in the request of one push; afterwards it can be added to the multi handle.
    mutating func compose(
        _ slot: PushSlot, of slab: PushSlab, token providerToken: ProviderToken,
        on easy: inout EasyHandle
    ) {
        let push = UnsafePointer(slab.push(slot))
        easy.headers.removeAll()
        easy.headers.append("authorization", providerToken.bearer)
        append("apns-push-type", pushTypes[Int(push.pointee.type.rawValue)], to: &easy)
        append("apns-topic", topics[Int(push.pointee.route.rawValue)], to: &easy)
        appendOptional(push, to: &easy)
        easy.prepare(
            tag: slot, target: target(slab.token(slot)), body: push.pointee.body,
            bodyBytes: Int(push.pointee.bodyBytes))
    }

    private func appendOptional(_ push: UnsafePointer<WirePush>, to easy: inout EasyHandle) {
        if push.pointee.apnsID != .none {
            push.pointee.apnsID.write(to: apnsID)
            easy.headers.append(
                "apns-id", UnsafeBufferPointer(start: apnsID, count: APNSID.textBytes))
        }
        let priority = Int(push.pointee.priority)
        if priority != 0 {
            precondition(priority <= 10, "no apns-priority \(priority)")
            append("apns-priority", Self.decimals[priority], to: &easy)
        }
        if push.pointee.expiration >= 0 {
            append("apns-expiration", Array(String(push.pointee.expiration).utf8), to: &easy)
        }
        if let collapseID = push.pointee.collapseID {
            easy.headers.append(
                "apns-collapse-id",
                UnsafeBufferPointer(start: collapseID, count: Int(push.pointee.collapseIDBytes)))
        }
    }

    private func append(_ name: StaticString, _ value: [UInt8], to easy: inout EasyHandle) {
        value.withUnsafeBufferPointer { easy.headers.append(name, $0) }
    }

    private mutating func target(_ token: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar> {
        let prefixBytes = Self.pathPrefix.utf8CodeUnitCount
        if prefixBytes &+ 2 &* token.count >= path.count { growPath(tokenBytes: token.count) }
        Hexadecimal.encode(token, to: path.baseAddress! + prefixBytes)
        path[prefixBytes &+ 2 &* token.count] = 0
        return UnsafeRawPointer(path.baseAddress!).assumingMemoryBound(to: CChar.self)
    }

    /// Makes room for a token of this size. Device tokens have no fixed length, so the scratch
    /// grows to the longest one seen.
    private mutating func growPath(tokenBytes: Int) {
        let prefixBytes = Self.pathPrefix.utf8CodeUnitCount
        path.deallocate()
        path = .allocate(capacity: prefixBytes + 2 * tokenBytes + 1)
        path.baseAddress!.update(from: Self.pathPrefix.utf8Start, count: prefixBytes)
    }
}
