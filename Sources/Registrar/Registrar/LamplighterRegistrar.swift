// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Configuration
internal import Foundation
internal import HTTPListener
internal import KafkaLog
internal import LinuxIO
package import Logging
internal import PushModel
internal import RegistrarAccess
internal import RegistrarRules
internal import ServiceLifecycle
internal import Telemetry

/// Takes registrations over HTTP and writes them to Kafka. `run()` returns once the registrar was
/// asked to stop, and throws if it cannot go on, so that a new process must be started.
package struct LamplighterRegistrar: Service, CustomStringConvertible {
    private let configuration: Configuration
    private let build: ServiceBuild
    private let logger: Logger
    private let mailbox = RegistrarMailbox()
    private let directory: OwnerDirectory
    private let forwarder: Forwarder
    private let store = RecordStore()
    private let tally = RequestTally()
    private let access: AccessControl
    private let seal: PeerSeal?
    private let certificate: ListenerCertificate?
    private let limits = RegistrarLimits()

    package init(
        configuration: Configuration, build: ServiceBuild, logger: Logger
    ) throws {
        self.configuration = configuration
        do throws(AccessSettingsError) {
            access = try AccessControl(configuration.registrar.auth.settings) { notice in
                logger.log(level: notice.isFault ? .warning : .notice, "\(notice.text)")
            }
        } catch {
            throw ServiceFailure.topic("\(error)")
        }
        self.build = build
        self.logger = logger
        let registrar = configuration.registrar
        seal = try registrar.peerTokenFile.map { PeerSeal(try Configuration.Admin.token(in: $0)) }
        directory = OwnerDirectory(seal: seal)
        certificate = try Self.certificate(registrar.tls, logger)
        forwarder = Forwarder(caFile: registrar.caFile, logger: logger)
    }

    private static func certificate(
        _ tls: Configuration.Registrar.TLS, _ logger: Logger
    ) throws -> ListenerCertificate? {
        guard let file = tls.certificateFile, let keyFile = tls.keyFile else { return nil }
        do {
            return try ListenerCertificate(certificateFile: file, keyFile: keyFile, logger: logger)
        } catch {
            throw ServiceFailure.topic("registrar.tls: \(error)")
        }
    }

    /// The name of this service in the log of its service group.
    package var description: String { "registrar" }

    package func run() async throws {
        let clients = configuration.registrarClientSettings
        let topic = configuration.kafka.topics.registrations
        let end = RegistrarEnd()
        do {
            try store.start(clients: clients, topic: topic, logger: logger)
            try RequiredTopic.refuseUncompacted(
                [.registrations(configuration.kafka)], settings: clients, logger: logger)
            try directory.start(clients: clients, topic: topic, logger: logger)
            try access.start()
            let loop = UncheckedBox(
                try RegistrarLoop(
                    settings: RegistrarLoop.Settings(
                        announcement: announcement(hasImports: false),
                        announcementOfImports: announcement(hasImports: true),
                        requestTimeout: configuration.registrar.requestTimeout),
                    kafka: try RegistrarClients(settings: clients, topic: topic, logger: logger),
                    mailbox: mailbox,
                    readAgain: { [store] in
                        store.repair(partition: $0, offset: $1, $2)
                    }, logger: logger))
            try NamedThread.detach(name: "ll-registrar") {
                end.finish(loop.value.run())
            }
        } catch let error as KafkaError {
            throw ServiceFailure.kafka(error)
        }
        defer {
            store.close()
            directory.close()
            forwarder.close()
            access.stop()
        }
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for listener in listeners { group.addTask { try await serve(listener) } }
                group.addTask {
                    if let failure = await end.value() {
                        throw ServiceFailure.clientFailed(failure)
                    }
                    // The last answers are on their way to their callers.
                    try? await Task.sleep(for: Self.lastAnswers)
                }
                // The thread's end, or the failure of a listener.
                defer { group.cancelAll() }
                try await group.next()
            }
        } onGracefulShutdown: {
            mailbox.requestStop()
        }
        mailbox.requestStop()
        _ = await end.value()
    }

    /// What other replicas find this one by; empty for one that has no others.
    private func announcement(hasImports: Bool) -> String {
        guard let seal, let url = configuration.registrar.advertisedURL else { return "" }
        return seal.announcement(of: url, hasImports: hasImports)
    }

    private func serve(_ listener: HTTPListener) async throws {
        do {
            try await listener.run()
        } catch let error as HTTPListenerFailure {
            throw ServiceFailure.listener("\(error)")
        }
        // It ends when it is cancelled; until then its end would be the registrar's.
    }

    // MARK: Listeners

    private var listeners: [HTTPListener] {
        var listeners = [registrations]
        if let settings = configuration.healthSettings {
            listeners.append(
                listener(settings, bound: "listening for probes and for requests of metrics") {
                    health($0)
                })
        }
        return listeners
    }

    private var registrations: HTTPListener {
        let registrar = configuration.registrar
        var settings = HTTPListenerSettings(
            name: "registrar", host: registrar.host, port: registrar.port ?? 0)
        settings.priority = .normal
        settings.certificate = certificate
        settings.checksCallers = true
        settings.passesAllMethods = true
        settings.formatRefusal = { [bodyBytesMax = limits.bodyBytesMax] in
            Problem.dressing($0, bodyBytesMax: bodyBytesMax)
        }
        settings.limits.bodyBytesMax = limits.bodyBytesMax
        settings.limits.connectionsMax = connectionsMax
        settings.limits.waitingConnectionsMax = connectionsMax
        // Behind one address there may be all phones: who gives way to a newcomer is for the listener's
        // admission to say.
        settings.limits.connectionsPerPeerMax = .max
        settings.limits.requestsPerSecondMax = nil
        settings.limits.idleTimeout = .seconds(60)
        settings.limits.connectionLifetimeMax = .seconds(600)
        // Answers are short, and those that nobody reads should be.
        settings.limits.sendBufferBytes = 16 << 10
        let reader = BodyReader()
        let service = RegistrarService(
            callers: AccessCheck(access: access),
            owners: KeyOwners(
                mailbox: mailbox, directory: directory, forwarder: forwarder, store: store,
                reader: reader, ownURL: registrar.advertisedURL, seal: seal,
                forwardingMax: registrar.requestTimeout + .seconds(2)),
            limits: limits, reader: reader,
            rates: CallerRates(
                ofCaller: registrar.requestsPerSecond,
                ofInstallation: registrar.requestsPerSecondOfInstallation), tally: tally,
            logger: logger)
        settings.admission = { service.admit($0) }
        settings.proxies = TrustedProxies(registrar.trustedProxies)
        settings.refused = { [tally] in tally.count($0, status: $1) }
        return listener(settings, bound: "listening for registrations") { await service.answer($0) }
    }

    /// Callers' connections, and as many that wait: what the process may open, but for files, Kafka's brokers,
    /// other replicas and probes.
    private var connectionsMax: Int {
        let descriptors = ProcessUsage.raiseFileDescriptorsMax() ?? 1024
        let connections = (descriptors - Self.keptDescriptors) / 2
        return max(64, min(Self.connectionsOfCallersMax, connections))
    }

    private func listener(
        _ settings: HTTPListenerSettings, bound message: Logger.Message,
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPAnswer
    ) -> HTTPListener {
        HTTPListener(
            settings,
            isBound: { [logger] port in
                logger.notice(
                    message,
                    metadata: ["host": "\(settings.host)", "port": .stringConvertible(port)])
            }, answer: answer)
    }

    // MARK: Health

    /// `/livez`, `/readyz` and `/metrics`, as a worker has them. Ready is a replica that a request can
    /// be sent to: that it can find the owner of every key.
    private func health(_ http: HTTPRequest) -> HTTPAnswer {
        guard http.method == .get else { return .notAllowed(but: [.get]) }
        switch http.path {
        case "/livez":
            let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
            let age = mailbox.heartbeat.age(now: now) ?? .zero
            guard age > Self.silenceMax else { return .text("ok") }
            return .text(
                "the thread that writes to Kafka has not turned for \(age.components.seconds) s",
                status: 503)
        case "/readyz", "/startupz":
            let owners = directory.owners
            let counters = mailbox.counters
            let own = Set(counters.owned)
            if let problem = directory.problem {
                return .text(
                    "Kafka does not say who owns the registrations: \(problem)", status: 503)
            }
            // What others have announced outlives them.
            guard counters.isInGroup else {
                return .text(
                    "the group has not said yet which partitions are this registrar's", status: 503)
            }
            let unread = counters.assigned - counters.owned.count
            guard unread <= 0 else {
                return .text(
                    "\(unread) of \(counters.assigned) partitions are not read to their ends yet",
                    status: 503)
            }
            let without = owners.unowned(but: own)
            guard without.isEmpty else {
                return .text(
                    "\(without.count) of \(owners.urls.count) partitions have no owner that is known",
                    status: 503)
            }
            let unavailable = counters.unavailable
            guard let first = unavailable.min(by: { $0.key < $1.key }) else { return .text("ok") }
            // The others are served here, and by nobody else.
            return .text(
                "ok, but for \(unavailable.count) partitions that Kafka cannot serve, such as "
                    + "\(first.key): \(first.value)")
        case "/metrics":
            let format = MetricsText.Format(accept: http.accept)
            let source = RegistrarMetrics.Source(
                counters: mailbox.counters, isKafkaAnswering: directory.problem == nil,
                requests: tally.all, version: build.version,
                commit: build.commit)
            return HTTPAnswer(
                contentType: format.contentType,
                body: Array(
                    MetricsText.text(RegistrarMetrics.families(of: source), as: format).utf8))
        default: return .notFound
        }
    }

    private static let connectionsOfCallersMax = 4096
    /// 64 connections of probes, 8 to each of 64 replicas at most but some 24 in all, those of three
    /// clients to the brokers, and files: some 150, and as many again.
    private static let keptDescriptors = 320
    private static let silenceMax = Duration.seconds(20)
    private static let lastAnswers = Duration.milliseconds(500)

    /// What the process ends after that is to stop, whatever hangs: the time of all its steps, and
    /// five seconds for its listeners. Pods have 30 s.
    package static let stopLimit =
        RegistrarLoop.stopTimeout + RegistrarLoop.leaveTimeout + lastAnswers + .seconds(5)
}

/// The end of the registrar's thread.
private final class RegistrarEnd: Sendable {
    private let stream: AsyncStream<String?>
    private let continuation: AsyncStream<String?>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func finish(_ failure: String?) {
        continuation.yield(failure)
        continuation.finish()
    }

    /// Waits for the end; nil if it was in order, or was waited for before.
    func value() async -> String? {
        for await failure in stream { return failure }
        return nil
    }
}
