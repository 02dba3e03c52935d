// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// An HTTP/1.1 server for operators: probes, metrics, status. It runs on one thread of low
/// priority and bounds everything that a client can make it keep, so that neither a flood of
/// requests nor a client that stops reading slows down the threads that carry pushes.
package struct HTTPListener: Sendable {
    private let settings: HTTPListenerSettings
    private let responder: ListenerResponder
    private let isBound: @Sendable (Int) -> Void
    private let logger: Logger

    /// How long opening a port may take.
    private static let openMax = Duration.seconds(5)

    /// - Parameters:
    ///   - isBound: is called with the port once the listener accepts connections.
    ///   - answer: answers one request. It is called only for requests that are allowed.
    package init(
        _ settings: HTTPListenerSettings, logger: Logger,
        isBound: @escaping @Sendable (Int) -> Void = { _ in },
        answer: @escaping @Sendable (HTTPQuestion) async -> HTTPAnswer
    ) {
        self.settings = settings
        self.isBound = isBound
        // Hummingbird logs each connection, and its own cancellation as an error. What ends the
        // listener is the caller's to log.
        var quiet = logger
        quiet.logLevel = .critical
        self.logger = quiet
        responder = ListenerResponder(
            access: AccessRule(settings), bodyBytesMax: settings.limits.bodyBytesMax,
            passesAllMethods: settings.passesAllMethods, formatRefusal: settings.formatRefusal,
            hasAdmission: settings.admission != nil, answer: answer)
    }

    /// Serves until the task is cancelled. With `idle` priority its port may be free a little later.
    /// - Throws: `HTTPListenerFailure` if it cannot listen on the address.
    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let executor = EventLoopExecutor(group.any())
        executor.run(as: settings.priority)
        let state = ListenerState()
        do {
            // Detached, since a graceful shutdown of the caller must not end the listener: probes and
            // metrics are wanted during the drain most of all.
            let server = Task.detached(executorPreference: executor) {
                try await application(on: group, state).run()
            }
            let isLeft = try await withTaskCancellationHandler {
                try await end(of: server)
            } onCancel: {
                Task.detached { await close(server, on: group, state) }
            }
            if !isLeft { try? await group.shutdownGracefully() }
        } catch {
            try? await group.shutdownGracefully()
            if state.isBound.load(ordering: .acquiring) || Task.isCancelled { throw error }
            throw HTTPListenerFailure(settings, cause: error)
        }
    }

    /// Waits for the server's end, unless its thread runs only where nobody else wants to: that gets no
    /// time on a busy machine, and a process that ends would wait for it as long as it may.
    ///
    /// - Returns: whether the end is left to `close`.
    private func end(of server: Task<Void, any Error>) async throws -> Bool {
        guard settings.priority == .idle else {
            try await server.value
            return false
        }
        let (ends, end) = AsyncStream<Void>.makeStream()
        Task.detached {
            _ = await server.result
            end.finish()
        }
        for await _ in ends {}
        if Task.isCancelled { return true }
        try await server.value
        return false
    }

    private func close(
        _ server: Task<Void, any Error>, on group: MultiThreadedEventLoopGroup,
        _ state: ListenerState
    ) async {
        // A server that is cancelled while it opens its port may not notice.
        let deadline = ContinuousClock.now + Self.openMax
        while !state.isBound.load(ordering: .acquiring), ContinuousClock.now < deadline {
            try? await Task.sleep(for: .milliseconds(5))
        }
        server.cancel()
        guard settings.priority == .idle else { return }
        _ = await server.result
        try? await group.shutdownGracefully()
    }

    private func application(
        on group: MultiThreadedEventLoopGroup, _ state: ListenerState
    ) -> Application<ListenerResponder> {
        let limits = settings.limits
        let shares = PeerShares(limits)
        let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
            maxHeaderFieldSize: limits.headerBytesMax, maxHeaderListSize: limits.headerBytesMax,
            maxHeaderFieldCount: limits.headersMax)
        let admission = settings.admission.map {
            ListenerAdmission($0, limits, refused: settings.refused)
        }
        let configuration = HTTP1Channel.Configuration(
            additionalChannelHandlers: [
                ConnectionBounds(limits, shares, responder: responder, admission)
            ],
            idleTimeout: TimeAmount(limits.idleTimeout), httpDecoderConfiguration: decoder)
        let server = HTTPServerBuilder { [certificate = settings.certificate] responder in
            let http = HTTP1Channel(responder: responder, configuration: configuration)
            guard let certificate else { return http }
            return TLSChannel(base: http, certificate: certificate)
        }
        return Application(
            responder: responder, server: server,
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port),
                // One that gives way to another is closed after that one is there.
                availableConnectionsDelegate: .maximum(
                    limits.connectionsMax + (admission == nil ? 0 : 1), logger: logger)),
            onServerRunning: { [isBound] channel in
                state.isBound.store(true, ordering: .releasing)
                isBound(channel.localAddress?.port ?? 0)
            },
            eventLoopGroupProvider: .shared(group), logger: logger)
    }
}

/// Whether a listener has ever accepted connections.
private final class ListenerState: Sendable {
    let isBound = Atomic<Bool>(false)
}

/// The error for an address that a listener cannot listen on.
package struct HTTPListenerFailure: Error, CustomStringConvertible {
    private let settings: HTTPListenerSettings
    private let cause: any Error

    init(_ settings: HTTPListenerSettings, cause: any Error) {
        self.settings = settings
        self.cause = cause
    }

    package var description: String {
        "\(settings.name) cannot listen on \(settings.host):\(settings.port): \(cause); \(remedy)"
    }

    private var remedy: String {
        let name = settings.name
        return switch (cause as? IOError)?.errnoCode {
        case EADDRINUSE: "choose another \(name).port, or end the program that has it"
        case EACCES: "choose a \(name).port above 1023"
        default: "\(name).host must be an address of this machine, or a name that resolves to one"
        }
    }
}
