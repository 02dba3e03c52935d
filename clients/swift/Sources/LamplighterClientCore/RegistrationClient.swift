// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Gets an installation's push tokens to the registrar: what is registered is first written to the
/// outbox and then sent. All of it is independent of Apple's frameworks; in an app use `Lamplighter`.
public final class RegistrationClient: Sendable {
    public struct Configuration: Sendable {
        /// The registrar's address, such as `https://push.example.com`.
        public var registrar: URL
        /// The app's bundle identifier.
        public var app: String
        public var environment: PushEnvironment
        /// A folder that the app and its extensions share.
        public var folder: URL
        public var backoff = Backoff()

        public init(registrar: URL, app: String, environment: PushEnvironment, folder: URL) {
            self.registrar = registrar
            self.app = app
            self.environment = environment
            self.folder = folder
        }
    }

    /// The handler of a class that has only one.
    public static let defaultHandler = "default"

    /// What became of the snapshots, for one reader. The newest 64 events wait for it.
    public let events: AsyncStream<ClientEvent>
    package let configuration: Configuration
    package let outbox: Outbox
    package let secrets: any SecretStore
    package let authorizer: any Authorizer
    package let report: @Sendable (ClientEvent) -> Void
    private let sender: Sender

    public convenience init(
        _ configuration: Configuration, secrets: any SecretStore, authorizer: any Authorizer,
        transport: any Transport = URLSessionTransport()
    ) {
        self.init(
            configuration, secrets: secrets, authorizer: authorizer, transport: transport,
            environment: Sender.Environment())
    }

    init(
        _ configuration: Configuration, secrets: any SecretStore, authorizer: any Authorizer,
        transport: any Transport, environment: Sender.Environment
    ) {
        let (events, continuation) = AsyncStream.makeStream(
            of: ClientEvent.self, bufferingPolicy: .bufferingNewest(64))
        self.events = events
        report = { continuation.yield($0) }
        self.configuration = configuration
        self.secrets = secrets
        self.authorizer = authorizer
        outbox = Outbox(folder: configuration.folder, now: environment.now)
        sender = Sender(
            outbox: outbox, registrar: configuration.registrar, transport: transport,
            authorizer: authorizer, secrets: secrets, backoff: configuration.backoff,
            environment: environment, report: report)
    }

    package var conclusion: Conclusion {
        Conclusion(outbox: outbox, now: outbox.now, report: report)
    }

    /// This installation's identifier; it survives a reinstallation.
    public func installation() throws -> String { try secrets.installation() }

    /// Take it before reading what is to be registered; see `since` below.
    public func mark() throws -> Outbox.Mark { try outbox.mark() }

    /// Writes what one handler's tokens show to the outbox. It replaces what the handler registered
    /// before; an empty array says that nothing is left.
    ///
    /// - Parameter mark: Do nothing if something of this class has been registered since then.
    /// - Returns: Whether it was written; false where `mark` kept it out.
    @discardableResult
    public func register(
        _ tokenClass: TokenClass, handler: String = defaultHandler, targets: [Target],
        since mark: Outbox.Mark? = nil
    ) throws -> Bool {
        try outbox.put(address(tokenClass, handler), .targets(targets), since: mark) != nil
    }

    /// Writes all controls of the installation, by handler. Handlers that are not named have none left.
    @discardableResult
    public func registerControls(
        _ handlers: [String: [Target]], since mark: Outbox.Mark? = nil
    ) throws -> Bool {
        for handler in handlers.keys where !Address.isName(handler) {
            throw Address.InvalidName(name: handler)
        }
        return try outbox.put(address(.controls, nil), .controls(handlers), since: mark) != nil
    }

    /// Removes a handler that will not come back, such as that of a Live Activity that has ended. For
    /// one that may, register an empty array: a removal that is late on the way would remove its
    /// successor too.
    public func remove(_ tokenClass: TokenClass, handler: String) throws {
        try outbox.put(address(tokenClass, handler), .removal)
    }

    /// Removes everything of this installation, for example when its user signs out. What is registered
    /// afterwards belongs to a new installation, so that the removal cannot hit it.
    public func forget() throws {
        try outbox.put(address(nil, nil), .removal)
        try secrets.remove("installation")
    }

    /// Sends what waits. To be called after each registration, at each launch and on each push.
    ///
    /// - Parameter patience: Seconds after which no further try begins: less than the system leaves the
    ///   process, such as 30 s for a background push.
    /// - Returns: Whether nothing waits any more.
    @discardableResult
    public func send(patience: TimeInterval = 20) async -> Bool {
        await sender.flush(patience: patience)
    }

    private func address(_ tokenClass: TokenClass?, _ handler: String?) throws -> Address {
        try Address(
            environment: configuration.environment, app: configuration.app,
            installation: installation(), tokenClass: tokenClass, handler: handler)
    }
}
