// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import PushModel
internal import RegistrarRules
internal import Synchronization

/// The handlers of an installation that are in a replica's partitions.
struct OwnedHandlers: Sendable {
    var partitions: Set<Int32>
    var handlers: [RegistrationArbiter.Listed]
}

/// What a replica has counted and holds.
struct RegistrarCounters: Sendable {
    var recordsRead: UInt64 = 0
    /// Requests that were told to try again since Kafka did not acknowledge them in time.
    var unacknowledged: UInt64 = 0
    var writtenAgain: UInt64 = 0
    var owned: [Int32] = []
    /// How many partitions the group has given to this replica, those that are being read included.
    var assigned = 0
    /// Whether the group has said which partitions are this replica's; not during a rebalance.
    var isInGroup = false
    var registrations = 0
    /// Whether something in its partitions was imported.
    var hasImports = false
    var bytes = 0
    var underWay = 0
    /// The owned partitions that Kafka cannot serve, with the causes.
    var unavailable: [Int32: String] = [:]
}

/// The requests for the registrar's thread, and what it publishes.
final class RegistrarMailbox: Sendable {
    enum Message: Sendable {
        case put(RegistrationArbiter.Put, partition: Int32, RegistrarLoop.Reply)
        case remove(RegistrationArbiter.Removal, partition: Int32, RegistrarLoop.Reply)
        case claim(InstallationClaim, partition: Int32, RegistrarLoop.Reply)
        /// Lists what is in these partitions, or in all that are owned; nil if one is not owned.
        case list(
            InstallationKey, partitions: Set<Int32>?, CheckedContinuation<OwnedHandlers?, Never>)
        case writeAgain(
            InstallationKey, handler: String, partition: Int32, offset: Int64, value: [UInt8])
        /// What was to be written again could not be read.
        case notWrittenAgain(InstallationKey, handler: String, partition: Int32)
    }

    private struct State {
        var messages: [Message] = []
        var isClosed = false
        var counters = RegistrarCounters()
    }

    let waker = Waker()
    let heartbeat = Heartbeat()
    private let state = Mutex(State())
    private let stop = Atomic<Bool>(false)

    func send(_ message: Message) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.messages.append(message) }
            return state.isClosed
        }
        if isClosed { Self.refuse(message) } else { waker.wake() }
    }

    var isEmpty: Bool { state.withLock(\.messages.isEmpty) }

    func take() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Nothing is taken any more; whoever waits is told.
    func close() {
        let left = state.withLock { state in
            defer { state.messages = [] }
            state.isClosed = true
            return state.messages
        }
        for message in left { Self.refuse(message) }
    }

    private static func refuse(_ message: Message) {
        switch message {
        case .put(_, _, let reply), .remove(_, _, let reply), .claim(_, _, let reply):
            reply.resume(returning: .notOwner)
        case .list(_, _, let reply): reply.resume(returning: nil)
        case .writeAgain, .notWrittenAgain: break
        }
    }

    func requestStop() {
        stop.store(true, ordering: .releasing)
        waker.signal()
    }

    var isStopping: Bool { stop.load(ordering: .acquiring) }

    func publish(_ counters: RegistrarCounters) { state.withLock { $0.counters = counters } }
    var counters: RegistrarCounters { state.withLock(\.counters) }

    // MARK: Questions

    func put(_ put: RegistrationArbiter.Put, in partition: Int32) async
        -> RegistrationArbiter.Answer
    {
        await withCheckedContinuation { send(.put(put, partition: partition, $0)) }
    }

    func remove(
        _ removal: RegistrationArbiter.Removal, in partition: Int32
    ) async -> RegistrationArbiter.Answer {
        await withCheckedContinuation { send(.remove(removal, partition: partition, $0)) }
    }

    func claim(
        _ claim: InstallationClaim, in partition: Int32
    ) async -> RegistrationArbiter.Answer {
        await withCheckedContinuation { send(.claim(claim, partition: partition, $0)) }
    }

    func list(_ key: InstallationKey, in partitions: Set<Int32>?) async -> OwnedHandlers? {
        await withCheckedContinuation { send(.list(key, partitions: partitions, $0)) }
    }
}
