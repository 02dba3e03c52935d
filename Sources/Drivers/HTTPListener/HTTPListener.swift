// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// An HTTP/1.1 server for operators: probes, metrics, status. It runs on one thread of low
/// priority and bounds everything that a client can make it keep, so that neither a flood of
/// requests nor a client that stops reading slows down the threads that carry pushes.
package struct HTTPListener: Sendable {
    private let settings: HTTPListenerSettings
    private let responder: ListenerResponder
    private let isBound: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - isBound: is called with the port once the listener accepts connections.
    ///   - answer: answers one request. It is called only for requests that are allowed.
    package init(
        _ settings: HTTPListenerSettings, isBound: @escaping @Sendable (Int) -> Void = { _ in },
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPAnswer
    ) {
        self.settings = settings
        self.isBound = isBound
        responder = ListenerResponder(
            access: AccessRule(settings), passesAllMethods: settings.passesAllMethods,
            formatRefusal: settings.formatRefusal, answer: answer)
    }

    /// Serves until the task is cancelled, also where the caller is only told to end: probes and metrics are
    /// wanted during the drain most of all.
    /// - Throws: `HTTPListenerFailure` if it cannot listen on the address; else why it accepts no more connections.
    package func run() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.any()
        let executor = EventLoopExecutor(eventLoop)
        executor.run(as: settings.priority)
        let peers = PeerShares(settings.limits)
        let admission = settings.admission.map {
            ListenerAdmission(
                $0, settings.limits, proxies: settings.proxies, refused: settings.refused)
        }
        let connections = eventLoop.submit {
            NIOLoopBound(acceptor(peers, admission, on: eventLoop), eventLoop: eventLoop)
        }
        let ended = connections.flatMap { open(for: $0, peers, admission, executor) }
        do {
            try await withTaskCancellationHandler {
                try await ended.get()
            } onCancel: {
                connections.whenSuccess { $0.value.close() }
            }
            try? await group.shutdownGracefully()
        } catch {
            try? await group.shutdownGracefully()
            if Task.isCancelled { return }
            throw error
        }
    }

    private func acceptor(
        _ peers: PeerShares, _ admission: ListenerAdmission?, on eventLoop: any EventLoop
    ) -> AcceptedConnections {
        let limits = settings.limits
        guard let admission else {
            return AcceptedConnections(
                connectionsMax: limits.connectionsMax, newcomers: nil, eventLoop: eventLoop)
        }
        let newcomers = AcceptedConnections.Newcomers(
            waiting: WaitingConnections(
                countMax: limits.waitingConnectionsMax, timeMax: limits.firstHeadTimeMax),
            isDoubtful: { peers.isDoubtful($0, now: .now()) },
            evicts: { admission.connections.areStrangersFull },
            slots: admission.connections.strangersMax)
        // One that gives way to another is closed after that one is there.
        return AcceptedConnections(
            connectionsMax: limits.connectionsMax + AcceptedConnections.openedAtOnce,
            newcomers: newcomers, eventLoop: eventLoop)
    }

    /// - Returns: when all connections have ended, after the port was closed.
    private func open(
        for connections: NIOLoopBound<AcceptedConnections>, _ peers: PeerShares,
        _ admission: ListenerAdmission?, _ executor: EventLoopExecutor
    ) -> EventLoopFuture<Void> {
        let limits = settings.limits
        let shared = ListenerConnection.Shared(
            limits: limits, peers: peers, responder: responder,
            admission: admission,
            connections: connections.value, executor: executor)
        let bound = NIOLoopBound(shared, eventLoop: connections.eventLoop)
        let bootstrap = ServerBootstrap(group: connections.eventLoop)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // Before each read it is asked whether there may be more.
            .serverChannelOption(
                .maxMessagesPerRead, value: UInt(settings.admission == nil ? 1 : 64)
            )
            // Connections have their port's. The kernel's own would grow to megabytes, and NIO reads all of
            // it when the client has sent all.
            .serverChannelOption(
                .socketOption(.so_rcvbuf), value: SocketOptionValue(Self.receiveBufferBytes)
            )
            .serverChannelOption(
                .socketOption(.so_sndbuf), value: SocketOptionValue(limits.sendBufferBytes)
            )
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(connections.value)
                }
            }
            .childChannelInitializer { [certificate = settings.certificate] channel in
                channel.eventLoop.makeCompletedFuture {
                    try Self.setUp(channel, certificate, bound.value)
                }
            }
        bootstrap.bind(host: settings.host, port: settings.port).whenComplete { result in
            switch result {
            case .success(let port):
                if !connections.value.isEnding { isBound(port.localAddress?.port ?? 0) }
            case .failure(let error):
                connections.value.failed(HTTPListenerFailure(settings, cause: error))
            }
        }
        return connections.value.end
    }

    /// Connections that come in one go, as from a crowd that was cut off. The kernel answers none beyond them, and
    /// their clients try again after a second. It has a bound of its own, net.core.somaxconn, which is as much.
    private static let backlog: Int32 = 4096
    private static let readBytesMax = 16 << 10
    /// What Linux begins with; the kernel doubles the number.
    private static let receiveBufferBytes = 64 << 10

    private static func setUp(
        _ channel: any Channel, _ certificate: ListenerCertificate?,
        _ shared: ListenerConnection.Shared
    ) throws {
        if let options = channel.syncOptions {
            try options.setOption(.allowRemoteHalfClosure, value: true)
            // What is read beyond a head is kept until it was decided on.
            try options.setOption(.autoRead, value: false)
            try options.setOption(.maxMessagesPerRead, value: 1)
            try options.setOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 1024, initial: 2048, maximum: readBytesMax))
        }
        let pipeline = channel.pipeline.syncOperations
        if let certificate { try pipeline.addHandler(TLSHandler(certificate.current)) }
        var bounds = NIOHTTPDecoderLimitConfiguration()
        bounds.maxHeaderFieldSize = shared.limits.headerBytesMax
        bounds.maxHeaderListSize = shared.limits.headerBytesMax
        bounds.maxHeaderFieldCount = shared.limits.headersMax
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false,
            withOutboundHeaderValidation: true, withEncoderConfiguration: .init(),
            withDecoderLimitConfiguration: bounds)
        try pipeline.addHandler(ListenerConnection(shared, on: channel.eventLoop))
    }
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
