// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Where events come from: the subscribed topics, in their order, and those that only a deferred
/// push names, such as one that was written before the subscription changed.
struct OriginTopics {
    private(set) var names: [String] = []
    /// The hash seed of each topic, by which `apns-id` differs for the same position in another
    /// topic.
    private(set) var seeds: [UInt64] = []

    /// The most topics beyond the subscribed ones. A worker meets a few former ones; hostile
    /// records must not make this grow.
    private static let strangersMax = 256
    private let subscribed: Int

    init(_ subscribed: [String]) {
        self.subscribed = subscribed.count
        for name in subscribed { append(name) }
    }

    /// The topic's number; nil when too many topics beyond the subscribed ones are known already.
    mutating func number(of name: String) -> UInt16? {
        if let known = names.firstIndex(of: name) { return UInt16(known) }
        guard names.count - subscribed < Self.strangersMax else { return nil }
        append(name)
        return UInt16(names.count - 1)
    }

    private mutating func append(_ name: String) {
        names.append(name)
        seeds.append(StableHash.topicSeed(name))
    }
}
