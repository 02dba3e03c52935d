// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel
internal import Synchronization

/// The state that all threads of one simulator share.
final class SimulatorShared: Sendable {
    let options: SimulatorOptions
    let context: TLSContext
    let registry: ProviderTokenRegistry
    let topics: TopicBook
    let tokens: DeviceTokenBook
    let channels: ChannelBook
    let counters = SimulatorCounters()
    let recorder: RequestRecorder
    let logger: Logger
    /// The seed of the hashes of device tokens: the same for all threads, and unknown to clients.
    let tokenSeed = UInt64.random(in: .min ... .max)

    init(
        options: SimulatorOptions, context: TLSContext, registry: ProviderTokenRegistry,
        logger: Logger
    ) {
        self.options = options
        self.context = context
        self.registry = registry
        self.logger = logger
        topics = TopicBook(apps: options.apps, pushTypes: options.pushTypes)
        tokens = DeviceTokenBook(
            tokensMax: options.deviceTokensMax, gapMin: options.deviceTokenGapMin.nanoseconds)
        channels = ChannelBook(options.channels, topics, channelsMax: options.channelsMax)
        recorder = RequestRecorder(requestsMax: options.recordRequests)
    }

    enum Assignment {
        case done
        case unknownTopic
        case bookIsFull
    }

    /// Assigns a device token to a topic and an environment.
    ///
    /// - Parameter token: lower-case hexadecimal.
    func assign(_ token: String, topic: String, _ environment: PushEnvironment) -> Assignment {
        let match = Array(topic.utf8).withUnsafeBytes { topics.match($0, type: nil) }
        guard case .topic(let app, let type) = match else { return .unknownTopic }
        let hash = Array(token.utf8).withUnsafeBytes { StableHash.hash64($0, seed: tokenSeed) }
        let owner = topics.owner(app: app, type: type, environment)
        return tokens.assign(hash, owner: owner) ? .done : .bookIsFull
    }

    var credentialLimits: ConnectionCredential.Limits {
        ConnectionCredential.Limits(
            ageMax: options.providerTokenAgeMax.components.seconds,
            updateMin: options.providerTokenUpdateMin.components.seconds,
            clockSkewMax: options.providerTokenClockSkewMax.components.seconds)
    }
}

/// A connection on its way from the thread that accepts to the one that serves it.
final class AcceptedSocket: Sendable {
    let socket: Socket
    /// The number of the connection, from 1; `conn` in the log.
    let number: Int
    let environment: PushEnvironment
    /// The numeric address that the client connected to.
    let address: String

    init(
        _ socket: consuming Socket, number: Int, environment: PushEnvironment
    ) throws(SystemError) {
        address = try socket.localAddress().host
        self.socket = socket
        self.number = number
        self.environment = environment
    }
}

/// The listening socket of one environment.
final class ListeningSocket: Sendable {
    let socket: Socket
    let environment: PushEnvironment

    init(_ socket: consuming Socket, environment: PushEnvironment) {
        self.socket = socket
        self.environment = environment
    }
}

/// The messages to one thread, in order. The thread reads them after each wait and before any
/// socket, so a command applies to requests sent after it was posted.
final class SimulatorMailbox: Sendable {
    enum Message: Sendable {
        case adopt(AcceptedSocket)
        case command(SimulatorCommand)
    }

    let waker = Waker()
    private let messages = Mutex<[Message]>([])
    /// How many messages the thread has handled.
    private let obeyed = Atomic<Int>(0)
    private let posted = Atomic<Int>(0)

    func post(_ message: Message) {
        messages.withLock {
            $0.append(message)
            posted.add(1, ordering: .relaxed)
        }
        waker.wake()
    }

    func haveObeyed(_ count: Int) {
        let all = obeyed.add(count, ordering: .releasing).newValue
        assert(
            all <= posted.load(ordering: .relaxed), "no more messages are obeyed than were posted")
    }

    /// Waits until every message posted so far is handled, for at most a second: the thread may
    /// have ended.
    func waitUntilObeyed() {
        let last = posted.load(ordering: .relaxed)
        for _ in 0..<Self.looksMax where obeyed.load(ordering: .acquiring) < last {
            usleep(Self.lookInterval)
        }
    }

    private static let lookInterval: UInt32 = 100
    /// How often to look: together a second.
    private static let looksMax = 10_000

    var isEmpty: Bool { messages.withLock { $0.isEmpty } }

    func take() -> [Message] {
        messages.withLock { messages in
            if messages.isEmpty { return [] }
            defer { messages.removeAll() }
            return messages
        }
    }
}

/// Keeps whole requests for tests, up to a bound.
final class RequestRecorder: Sendable {
    private let requestsMax: Int
    private let requests = Mutex<[RecordedRequest]>([])

    init(requestsMax: Int) { self.requestsMax = requestsMax }

    var isOn: Bool { requestsMax > 0 }

    func record(_ request: RecordedRequest) {
        requests.withLock { if $0.count < requestsMax { $0.append(request) } }
    }

    var all: [RecordedRequest] { requests.withLock { $0 } }
}
