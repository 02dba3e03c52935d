// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Logging
internal import Rdkafka

/// What a consumer holds between opening and closing: a client, its topics, and the queue that
/// wakes its thread.
final class ConsumerSession {
    let client: Client
    let topics: [Topic]
    let tokens: TokenSource?
    private var queue: EventQueue?
    private var lastIdentity: OpaquePointer?
    private var lastIndex = 0

    init(
        settings: KafkaClientSettings, role: KafkaClientSettings.Role, topics names: [String],
        logger: Logger, waker: Waker
    ) throws(KafkaError) {
        client = try settings.client(for: role, logger: logger)
        tokens = settings.tokens
        do throws(RdkafkaError) {
            try client.pollEverythingAsConsumer()
            // The handles are held for the client's life, so that no other topic can get their
            // identity.
            var topics: [Topic] = []
            for name in names { topics.append(try Topic(name, of: client)) }
            self.topics = topics
        } catch {
            throw .client(error)
        }
        queue = EventQueue.ofConsumer(client)
        // It has one as soon as everything is polled as a consumer's, which has not thrown.
        precondition(queue != nil, "a consumer has a queue that wakes its thread")
        queue?.wake(descriptor: waker.descriptor, owner: waker)
    }

    /// The position of the message's topic in `topics`. The last one is remembered, since most
    /// messages have the topic of the message before.
    func index(of message: borrowing Message) -> Int? {
        guard let identity = message.topicIdentity else { return nil }
        if identity == lastIdentity { return lastIndex }
        guard let index = topics.firstIndex(where: { $0.identity == identity }) else {
            return nil
        }
        lastIdentity = identity
        lastIndex = index
        return index
    }

    /// Closes the consumer; false if it did not close in time. librdkafka requires that the queue
    /// is released first.
    ///
    /// - Parameter leaving: whether a static member leaves its group, too; false if it did not in time.
    func close(timeout: Duration, leaving: Bool = false) -> Bool {
        queue = nil
        return client.closeConsumer(timeout: timeout, leaving: leaving)
    }
}
