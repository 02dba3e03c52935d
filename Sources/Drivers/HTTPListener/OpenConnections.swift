// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import NIOCore
internal import Synchronization

/// The connections of a listener whose callers show who they are. A stranger's connection, on which
/// nobody has shown it yet, keeps its place until strangers have all of theirs: then the oldest of the
/// address that has the most of them gives way to a new one. So whoever opens connections and says
/// nothing closes their own, and a caller who asks at once is answered.
final class OpenConnections: Sendable {
    typealias ID = UInt64

    private struct Entry {
        let channel: any Channel
        let peer: String
        var isKnown = false
        /// Since when no request is under way; nil while one is.
        var idleSince: NIODeadline?
        /// What the program still has of an answer, in bytes.
        var unread = 0
        var unreadSince = NIODeadline.distantFuture
    }

    private struct State {
        var entries: [ID: Entry] = [:]
        /// By address, oldest first, since the IDs count up.
        var strangers: [String: [ID]] = [:]
        var strangerCount = 0
        var unread = 0
        var lastID: ID = 0
    }

    private let state = Mutex(State())
    private let connectionsMax: Int
    let strangersMax: Int
    private let unreadMax: Int

    /// - Parameters:
    ///   - strangersMax: of `connectionsMax`, those on which nobody has shown who they are.
    ///   - unreadMax: the bytes of all answers that their clients have not read.
    init(connectionsMax: Int, strangersMax: Int, unreadMax: Int) {
        self.connectionsMax = connectionsMax
        self.strangersMax = strangersMax
        self.unreadMax = unreadMax
    }

    var count: Int { state.withLock(\.entries.count) }

    /// Whether the next stranger takes the place of another.
    var areStrangersFull: Bool { state.withLock { $0.strangerCount >= strangersMax } }

    /// Adds a connection, and closes the one that gives way to it.
    func opened(_ channel: any Channel, peer: String) -> ID {
        let (id, gone) = state.withLock { state in
            var gone: [any Channel] = []
            if state.strangerCount >= strangersMax, let stranger = Self.oldestStranger(state) {
                gone += Self.remove(stranger, &state)
            } else if state.entries.count >= connectionsMax {
                gone += Self.remove(Self.longestIdle(state), &state)
            }
            state.lastID += 1
            state.entries[state.lastID] = Entry(channel: channel, peer: peer, idleSince: .now())
            state.strangers[peer, default: []].append(state.lastID)
            state.strangerCount += 1
            return (state.lastID, gone)
        }
        for channel in gone { channel.close(promise: nil) }
        return id
    }

    func closed(_ id: ID) {
        state.withLock { _ = Self.remove(id, &$0) }
    }

    /// Somebody has shown on this connection who they are.
    func becameKnown(_ id: ID) {
        state.withLock { state in
            guard let entry = state.entries[id], !entry.isKnown else { return }
            Self.removeStranger(id, entry.peer, &state)
            state.entries[id]!.isKnown = true
        }
    }

    func requestBegan(_ id: ID) { state.withLock { $0.entries[id]?.idleSince = nil } }

    /// Where all places were taken by requests when one more came, the first that is idle gives way.
    func requestEnded(_ id: ID) {
        let gone = state.withLock { state in
            state.entries[id]?.idleSince = .now()
            guard state.entries.count > connectionsMax else { return [any Channel]() }
            return Self.remove(Self.longestIdle(state), &state)
        }
        for channel in gone { channel.close(promise: nil) }
    }

    // MARK: Answers

    /// An answer of so many bytes waits for its client. Where all answers together are too much, the
    /// connections go whose clients have not read for the longest.
    func answerBegan(_ id: ID, bytes: Int) {
        let gone = state.withLock { state in
            guard state.entries[id] != nil else { return [any Channel]() }
            state.entries[id]!.unread += bytes
            state.entries[id]!.unreadSince = min(state.entries[id]!.unreadSince, .now())
            state.unread += bytes
            var gone: [any Channel] = []
            while state.unread > unreadMax {
                let waiting = state.entries.filter { $0.value.unread > 0 && $0.key != id }
                let slowest = waiting.min { $0.value.unreadSince < $1.value.unreadSince }
                guard let slowest else { break }
                gone += Self.remove(slowest.key, &state)
            }
            return gone
        }
        for channel in gone { channel.close(promise: nil) }
    }

    /// So many bytes of the answer are with the kernel: its client reads.
    func answerMoved(_ id: ID, bytes: Int) {
        state.withLock { state in
            guard let unread = state.entries[id]?.unread, unread > 0 else { return }
            state.entries[id]!.unread = max(0, unread - bytes)
            state.entries[id]!.unreadSince = .now()
            state.unread -= min(unread, bytes)
        }
    }

    func answerEnded(_ id: ID) { state.withLock { Self.forgetAnswer(id, &$0) } }

    private static func forgetAnswer(_ id: ID, _ state: inout State) {
        state.unread -= state.entries[id]?.unread ?? 0
        state.entries[id]?.unread = 0
        state.entries[id]?.unreadSince = .distantFuture
    }

    // MARK: Who gives way

    private static func oldestStranger(_ state: State) -> ID? {
        // Of addresses that have as many, the one whose first is the oldest: IDs count up.
        state.strangers.max {
            ($0.value.count, $1.value[0]) < ($1.value.count, $0.value[0])
        }?.value.first
    }

    private static func longestIdle(_ state: State) -> ID? {
        state.entries.filter { $0.value.idleSince != nil }
            .min { $0.value.idleSince! < $1.value.idleSince! }?.key
    }

    private static func remove(_ id: ID?, _ state: inout State) -> [any Channel] {
        guard let id, let entry = state.entries[id] else { return [] }
        forgetAnswer(id, &state)
        if !entry.isKnown { removeStranger(id, entry.peer, &state) }
        state.entries[id] = nil
        return [entry.channel]
    }

    private static func removeStranger(_ id: ID, _ peer: String, _ state: inout State) {
        guard var ids = state.strangers[peer], let index = ids.firstIndex(of: id) else { return }
        state.strangers[peer] = nil
        ids.remove(at: index)
        if !ids.isEmpty { state.strangers[peer] = ids }
        state.strangerCount -= 1
    }
}
