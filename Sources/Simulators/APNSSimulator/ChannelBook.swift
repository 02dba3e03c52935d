// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Synchronization

/// The broadcast channels of every app, shared by all threads.
final class ChannelBook: Sendable {
    private let channelsMax: Int
    /// Whether a channel stores the latest broadcast, by its ID.
    private let channels: Mutex<[Owner: [String: Bool]]>

    /// A channel belongs to one environment and cannot be moved to the other.
    struct Owner: Hashable {
        var app: Int
        var environment: PushEnvironment
    }

    /// - Parameter known: those of apps that the topics do not have are left out.
    init(_ known: [SimulatorChannel], _ topics: TopicBook, channelsMax: Int) {
        self.channelsMax = channelsMax
        var channels: [Owner: [String: Bool]] = [:]
        for channel in known {
            guard
                let app = topics.apps.firstIndex(where: {
                    $0.bundleID.elementsEqual(channel.bundleID.utf8)
                })
            else { continue }
            let owner = Owner(app: app, environment: channel.environment)
            channels[owner, default: [:]][channel.channelID] = channel.storesLatest
        }
        self.channels = Mutex(channels)
    }

    /// Whether the channel stores the latest broadcast; nil if there is no such channel.
    func storesLatest(_ channelID: String, of owner: Owner) -> Bool? {
        channels.withLock { $0[owner]?[channelID] }
    }

    /// The IDs of the owner's channels, sorted.
    func list(of owner: Owner) -> [String] {
        channels.withLock { $0[owner]?.keys.sorted() ?? [] }
    }

    /// Makes a channel.
    /// - Returns: its ID; nil if the owner has as many as it may.
    func create(storesLatest: Bool, of owner: Owner) -> String? {
        // As long as those of Apple's samples.
        let channelID = Base64.encode((0..<16).map { _ in UInt8.random(in: 0...255) })
        return channels.withLock {
            guard $0[owner]?.count ?? 0 < channelsMax else { return nil }
            $0[owner, default: [:]][channelID] = storesLatest
            return channelID
        }
    }

    /// - Returns: whether there was such a channel.
    func delete(_ channelID: String, of owner: Owner) -> Bool {
        channels.withLock { $0[owner]?.removeValue(forKey: channelID) != nil }
    }
}
