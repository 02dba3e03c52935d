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
    /// The paths of broadcasts by route, with a zero byte at the end; empty for routes of devices.
    private let broadcastPaths: [[UInt8]]
    /// Whether the path of a route is one of them. Looking at the path would cost a retain and a
    /// release for each push.
    private let isForBroadcasts: [Bool]
    private let pushTypes: [[UInt8]]
    private let apnsID: UnsafeMutablePointer<UInt8>
    /// The scratch for a request's path, which libcurl takes terminated by a zero byte.
    private var path: UnsafeMutableBufferPointer<UInt8>
    /// The same for the path of a broadcast.
    private var broadcastPath: UnsafeMutableBufferPointer<UInt8>

    init(plan: DeliveryPlan) {
        topics = plan.routing.routes.map { Array($0.apnsTopic.utf8) }
        broadcastPaths = plan.routing.routes.map { route in
            route.broadcastPath(in: plan.routing).map { Array($0.utf8) + [0] } ?? []
        }
        isForBroadcasts = broadcastPaths.map { !$0.isEmpty }
        pushTypes = PushType.all.map { Array($0.name.utf8) }
        apnsID = .allocate(capacity: APNSID.textBytes)
        path = .allocate(capacity: 0)
        broadcastPath = .allocate(capacity: 0)
        growPath(tokenBytes: PushSlab.inlineTokenBytes)
    }

    deinit {
        apnsID.deallocate()
        path.deallocate()
        broadcastPath.deallocate()
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
        let route = Int(push.pointee.route.rawValue)
        let path: UnsafePointer<CChar>
        if isForBroadcasts[route] {
            append("apns-channel-id", Array(Base64.encode(Array(slab.token(slot))).utf8), to: &easy)
            appendID(push, named: "apns-request-id", to: &easy)
            appendOptional(push, to: &easy)
            path = target(broadcastPaths[route])
        } else {
            append("apns-topic", topics[route], to: &easy)
            appendID(push, named: "apns-id", to: &easy)
            appendOptional(push, to: &easy)
            appendCollapseID(push, to: &easy)
            path = target(slab.token(slot))
        }
        easy.prepare(
            tag: slot, target: path, body: push.pointee.body,
            bodyBytes: Int(push.pointee.bodyBytes))
    }

    private func appendID(
        _ push: UnsafePointer<WirePush>, named name: StaticString, to easy: inout EasyHandle
    ) {
        guard push.pointee.apnsID != .none else { return }
        push.pointee.apnsID.write(to: apnsID)
        easy.headers.append(name, UnsafeBufferPointer(start: apnsID, count: APNSID.textBytes))
    }

    private func appendOptional(_ push: UnsafePointer<WirePush>, to easy: inout EasyHandle) {
        let priority = Int(push.pointee.priority)
        if priority != 0 {
            precondition(priority <= 10, "an apns-priority is at most 10: \(priority)")
            append("apns-priority", Self.decimals[priority], to: &easy)
        }
        if push.pointee.expiration >= 0 {
            append("apns-expiration", Array(String(push.pointee.expiration).utf8), to: &easy)
        }
    }

    private func appendCollapseID(_ push: UnsafePointer<WirePush>, to easy: inout EasyHandle) {
        if let collapseID = push.pointee.collapseID {
            easy.headers.append(
                "apns-collapse-id",
                UnsafeBufferPointer(start: collapseID, count: Int(push.pointee.collapseIDBytes)))
        }
    }

    private func append(_ name: StaticString, _ value: [UInt8], to easy: inout EasyHandle) {
        value.withUnsafeBufferPointer { easy.headers.append(name, $0) }
    }

    /// The path of a broadcast.
    ///
    /// - Parameter path: with its zero byte.
    private mutating func target(_ path: [UInt8]) -> UnsafePointer<CChar> {
        if path.count > broadcastPath.count {
            broadcastPath.deallocate()
            broadcastPath = .allocate(capacity: path.count)
        }
        _ = broadcastPath.update(from: path)
        return UnsafeRawPointer(broadcastPath.baseAddress!).assumingMemoryBound(to: CChar.self)
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
