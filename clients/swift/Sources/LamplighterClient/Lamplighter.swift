// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

#if canImport(WidgetKit)
    import Foundation
    import LamplighterClientCore

    /// Gets the push tokens of an app's controls, widgets, Live Activities and device to the registrar.
    /// One value serves an app and its extensions, each of which makes its own with the same arguments.
    ///
    /// What a push handler reports is first written to a folder of the app group and then sent: an
    /// extension lives for seconds. What could not be sent goes with the app's next launch or push.
    public final class Lamplighter: Sendable {
        /// What is independent of Apple's frameworks; for whatever this type has no method for.
        public let client: RegistrationClient
        private let appGroup: String
        /// In an extension, which the system suspends long before a request is answered.
        private let uploader: BackgroundUploader?

        /// - Parameters:
        ///   - registrar: Such as `https://push.example.com`.
        ///   - appGroup: The app group of the app and its extensions, `group.…`.
        ///   - keychainGroup: A Keychain access group of theirs, with the team's prefix; nil uses the
        ///     app group, which is one too on iOS.
        ///   - environment: Nil to ask the app's signature.
        ///   - credential: Asks the app's backend for a bearer token that the registrar accepts. It is
        ///     also called in the extension. `renewing`: the registrar has refused the last one.
        public convenience init(
            registrar: URL, appGroup: String, keychainGroup: String? = nil,
            environment: PushEnvironment? = nil,
            credential: @escaping @Sendable (_ renewing: Bool) async throws -> String
        ) {
            self.init(
                registrar: registrar, appGroup: appGroup, keychainGroup: keychainGroup,
                environment: environment, authorizer: BearerAuthorizer(credential))
        }

        /// As above, with credentials of another kind, such as App Attest's.
        public init(
            registrar: URL, appGroup: String, keychainGroup: String? = nil,
            environment: PushEnvironment? = nil, authorizer: any Authorizer
        ) {
            let container = FileManager.default.containerURL(
                forSecurityApplicationGroupIdentifier: appGroup)
            guard let container else {
                // A mistake in the build: no device and no user makes a difference to it.
                preconditionFailure(
                    "the entitlements of this target lack the app group \(appGroup)")
            }
            let configuration = RegistrationClient.Configuration(
                registrar: registrar, app: HostApp.bundleIdentifier,
                environment: environment ?? HostApp.environment,
                folder: container.appendingPathComponent("Library/Application Support/Lamplighter"))
            client = RegistrationClient(
                configuration, secrets: KeychainSecretStore(group: keychainGroup ?? appGroup),
                authorizer: authorizer)
            self.appGroup = appGroup
            uploader = HostApp.isExtension ? BackgroundUploader(client, appGroup: appGroup) : nil
        }

        /// What became of what was registered; for one reader.
        public var events: AsyncStream<ClientEvent> { client.events }

        // MARK: Device

        /// To be called with what `didRegisterForRemoteNotificationsWithDeviceToken` brings, at each
        /// launch: Apple advises against remembering the token.
        ///
        /// - Parameters:
        ///   - shows: Which subjects the app itself depends on, such as the user's inbox.
        ///   - onChange: `background` wakes the app when one of them changes, at most two or three times
        ///     an hour (Apple, "Pushing background updates to your App"). Nil: only pushes with an alert
        ///     reach it.
        public func deviceTokenDidChange(
            _ token: Data, shows: [Shown], onChange: OnChange? = .background
        ) {
            register(.device, [Target(token: token, shows: shows, onChange: onChange)])
        }

        // MARK: Sending

        /// Sends what waits. In the app, call it at each launch and on each push.
        ///
        /// - Parameter patience: Seconds after which no further try begins.
        /// - Returns: Whether nothing waits any more.
        @discardableResult
        public func send(patience: TimeInterval = 20) async -> Bool {
            if let uploader {
                await uploader.uploadPending()
                return false
            }
            return await client.send(patience: patience)
        }

        /// Removes everything of this installation from the registrar, for example when the user signs
        /// out. Register again when somebody signs in: it will be another installation.
        public func forget() {
            do {
                try client.forget()
            } catch {
                client.report(.outboxFailed(String(describing: error)))
            }
            sendSoon()
        }

        /// To be called by `application(_:handleEventsForBackgroundURLSession:completionHandler:)` and by
        /// `onBackgroundURLSessionEvents(matching:_:)` of a widget.
        ///
        /// - Returns: Whether the session is one of Lamplighter's.
        @discardableResult
        public func handleBackgroundEvents(
            of session: String, completion: @escaping @Sendable () -> Void
        ) -> Bool {
            guard session.hasPrefix(BackgroundUploader.prefix) else { return false }
            let uploader =
                uploader.flatMap { $0.identifier == session ? $0 : nil }
                ?? BackgroundUploader(client, appGroup: appGroup, identifier: session)
            uploader.handleEvents(completion)
            return true
        }

        // MARK: For the handlers

        func register(
            _ tokenClass: TokenClass, handler: String = RegistrationClient.defaultHandler,
            _ targets: [Target]
        ) {
            do {
                try client.register(tokenClass, handler: handler, targets: targets)
            } catch {
                // Before the first unlock, or on a full disk. The next launch registers everything.
                client.report(.outboxFailed(String(describing: error)))
            }
            sendSoon()
        }

        /// Sends what waits as far as the system leaves time for it.
        func sendSoon() {
            #if canImport(UIKit)
                // The system would otherwise suspend an extension as soon as its handler returns.
                ProcessInfo.processInfo.performExpiringActivity(withReason: "Push tokens") {
                    expired in
                    guard !expired else { return }
                    let finished = DispatchSemaphore(value: 0)
                    Task {
                        await self.send()
                        finished.signal()
                    }
                    _ = finished.wait(timeout: .now() + 20)
                }
            #else
                Task { await self.send() }
            #endif
        }
    }
#endif
