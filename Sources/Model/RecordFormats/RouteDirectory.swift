// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

/// Finds apps and routes by the bytes that name them in records, without making a string and
/// without allocating.
package struct RouteDirectory {
    private var apps = ByteDirectory()
    private var routes = ByteDirectory()
    /// Whether a credential serves the app in the environment, indexed by `position`.
    private var served: [Bool]
    /// The app, where there is only one: an event need not name it.
    package let soleApp: AppID?

    package init(_ routing: RoutingTable) {
        precondition(
            PushType.all.allSatisfy {
                $0.topicSuffix.utf8.count <= RecordLimits.topicSuffixBytesMax
            }, "every topic suffix is short enough to be named by a record")
        let environments = PushEnvironment.allCases.count
        served = Array(repeating: false, count: routing.apps.count * environments)
        soleApp = routing.apps.count == 1 ? AppID(rawValue: 0) : nil
        for (index, name) in routing.apps.enumerated() {
            apps.insert(Array(name.utf8), UInt16(index))
        }
        for (index, route) in routing.routes.enumerated() {
            routes.insert([route.environment.rawValue] + route.apnsTopic.utf8, UInt16(index))
            served[Self.position(route.app, route.environment)] = true
        }
    }

    package func app(named name: UnsafeRawBufferPointer) throws(UnreadableRecord) -> AppID {
        guard let index = apps.find(name, prefix: nil) else {
            throw UnreadableRecord(
                .unknownApp, "no credential serves this app: add it to apns.credentials")
        }
        return AppID(rawValue: index)
    }

    package func route(
        environment: PushEnvironment, apnsTopic: UnsafeRawBufferPointer
    ) throws(UnreadableRecord) -> RouteID {
        guard let index = routes.find(apnsTopic, prefix: environment.rawValue) else {
            throw UnreadableRecord(
                .unknownApp, "no credential serves this apns-topic in this environment")
        }
        return RouteID(rawValue: index)
    }

    package func requireServed(_ app: AppID, _ environment: PushEnvironment)
        throws(UnreadableRecord)
    {
        guard served[Self.position(app, environment)] else {
            throw UnreadableRecord(
                .unservedEnvironment,
                "no credential serves this app in \(environment.name): add the environment")
        }
    }

    private static func position(_ app: AppID, _ environment: PushEnvironment) -> Int {
        Int(app.rawValue) * PushEnvironment.allCases.count + Int(environment.rawValue)
    }
}

/// A small hash table from byte strings to positions, built once.
private struct ByteDirectory {
    private var names: [[UInt8]] = []
    private var positions: [UInt16] = []
    /// Index in `names` plus one, or 0 for a free slot; open addressing by hash, at most half full.
    private var slots: [UInt32] = Array(repeating: 0, count: 16)

    mutating func insert(_ name: [UInt8], _ position: UInt16) {
        names.append(name)
        positions.append(position)
        if names.count * 2 > slots.count {
            slots = Array(repeating: 0, count: slots.count * 2)
            for index in names.indices { place(index) }
        } else {
            place(names.count - 1)
        }
        precondition(
            names.count * 2 <= slots.count,
            "at least half of the slots are empty, so a search for an unknown name ends")
    }

    private mutating func place(_ index: Int) {
        var slot = names[index].withUnsafeBytes { Self.hash($0, prefix: nil) } & (slots.count - 1)
        while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = UInt32(index + 1)
    }

    /// - Parameter prefix: a byte that stands before `name` in the string looked up.
    func find(_ name: UnsafeRawBufferPointer, prefix: UInt8?) -> UInt16? {
        var slot = Self.hash(name, prefix: prefix) & (slots.count - 1)
        while slots[slot] != 0 {
            let index = Int(slots[slot]) - 1
            if matches(names[index], name, prefix: prefix) { return positions[index] }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    private func matches(
        _ known: [UInt8], _ name: UnsafeRawBufferPointer, prefix: UInt8?
    ) -> Bool {
        known.withUnsafeBytes { known in
            guard let prefix else { return known.equals(name) }
            return known.first == prefix
                && UnsafeRawBufferPointer(rebasing: known.dropFirst()).equals(name)
        }
    }

    /// FNV-1a is enough: the names are few and short, and the operator chooses them.
    private static func hash(_ name: UnsafeRawBufferPointer, prefix: UInt8?) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        if let prefix { hash = (hash ^ UInt64(prefix)) &* 0x100_0000_01B3 }
        for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(truncatingIfNeeded: hash ^ hash >> 32)
    }
}
