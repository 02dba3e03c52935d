// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import OpenSSL
package import PushModel
internal import Synchronization
internal import TestCertificates

/// A stand-in for APNs: HTTP/2 over TLS on the loopback interface, that validates as Apple's
/// pages say and misbehaves on demand. It sets the process to ignore SIGPIPE.
package final class APNSSimulator: Sendable {
    private let options: SimulatorOptions
    private let shared: SimulatorShared
    private let running = Mutex<Running?>(nil)

    private let rules: Mutex<RuleLedger>

    /// The authority that a client must trust; nil if the certificate was given.
    package let authorityPEM: String?

    private struct Running {
        let mailboxes: [SimulatorMailbox]
        let threads: [ServingThread]
        let ports: [PushEnvironment: UInt16]
    }

    /// Makes the certificate, reads the keys and writes the CA file. Opens no port yet.
    package init(
        _ options: SimulatorOptions, logger: Logger = Logger(label: "apns-simulator")
    ) throws {
        guard !options.listeners.isEmpty, options.threads > 0 else {
            throw SimulatorError(description: "a simulator needs a listener and a thread")
        }
        let context: TLSContext
        switch options.certificate {
        case .pem(let certificatePEM, let keyPEM):
            do throws(TLSError) {
                context = try .server(certificatePEM: certificatePEM, keyPEM: keyPEM)
            } catch {
                throw SimulatorError(
                    description: "the certificate that was given, or its key, is unusable: \(error)"
                )
            }
            authorityPEM = nil
        case .generated(let caFile):
            let authority = try CertificateAuthority()
            let made = try authority.serverCertificate(
                names: ["localhost"] + PushEnvironment.allCases.map(\.defaultHost))
            context = try .server(certificatePEM: made.certificatePEM, keyPEM: made.keyPEM)
            authorityPEM = authority.certificatePEM
            if let caFile { try TextFile.write(authority.certificatePEM, to: caFile) }
        }
        self.options = options
        rules = Mutex(RuleLedger(options.rules))
        shared = SimulatorShared(
            options: options, context: context,
            registry: try ProviderTokenRegistry(options.keys), logger: logger)
    }

    deinit { stop() }

    /// Opens the ports and starts serving.
    /// - Returns: the port of the first listener; `port(of:)` has the others.
    @discardableResult
    package func start() throws -> UInt16 {
        signal(SIGPIPE, SIG_IGN)
        return try running.withLock { running in
            guard running == nil else {
                throw SimulatorError(description: "the simulator runs already")
            }
            // Each thread opens the log for itself; an invalid path should fail here.
            if let path = options.logPath {
                _ = try AnswerLog(path: path, logger: shared.logger)
            }
            var sockets: [ListeningSocket] = []
            var ports: [PushEnvironment: UInt16] = [:]
            for listener in options.listeners {
                let socket = try listen(port: listener.port)
                ports[listener.environment] = try socket.localPort()
                sockets.append(ListeningSocket(socket, environment: listener.environment))
            }
            let mailboxes = (0..<options.threads).map { _ in SimulatorMailbox() }
            // The threads obey these commands before they read any socket.
            for command in options.commands { try carryOut(command, by: mailboxes) }
            // The first thread accepts for all, so it is started last: if another cannot be
            // started, no client has been served, and the running ones are told to end.
            do {
                var threads: [ServingThread] = []
                for index in mailboxes.indices.reversed() {
                    threads.append(
                        try startThread(index, mailboxes, listeners: index == 0 ? sockets : []))
                }
                running = Running(mailboxes: mailboxes, threads: threads, ports: ports)
            } catch {
                for mailbox in mailboxes { mailbox.post(.command(.stop)) }
                throw error
            }
            return ports[options.listeners[0].environment] ?? 0
        }
    }

    /// The port that serves an environment; nil if there is none or the simulator is not running.
    package func port(of environment: PushEnvironment) -> UInt16? {
        running.withLock { $0?.ports[environment] }
    }

    /// Makes every thread carry out the command. It applies to requests sent after this returns.
    /// Errors are only logged.
    package func perform(_ command: SimulatorCommand) {
        do {
            try attempt(command)
        } catch {
            shared.logger.error("a command failed", metadata: ["error": "\(error)"])
        }
    }

    /// Does the same as `perform`, but throws errors.
    /// - Throws: if there are too many rules, or a device token is assigned to an unknown topic.
    package func attempt(_ command: SimulatorCommand) throws(SimulatorError) {
        let mailboxes = running.withLock { $0?.mailboxes ?? [] }
        try carryOut(command, by: mailboxes)
        for mailbox in mailboxes { mailbox.waitUntilObeyed() }
    }

    /// Posts a command to all threads, in the same order as other commands.
    private func carryOut(
        _ command: SimulatorCommand, by mailboxes: [SimulatorMailbox]
    ) throws(SimulatorError) {
        switch command {
        case .addRule(let rule):
            guard rules.withLock({ $0.add(rule) }) else {
                throw SimulatorError(
                    description: "\(RuleLedger.rulesMax) rules are in force; say rules clear")
            }
        case .rules(let given): rules.withLock { $0.replace(given) }
        case .deviceTokenGapMin(let gap): shared.tokens.keepGap(gap.nanoseconds)
        case .assignToken(let token, let topic, let environment):
            switch shared.assign(token, topic: topic, environment) {
            case .done: break
            case .unknownTopic:
                throw SimulatorError(description: "\(topic) is no topic of an app given by --app")
            case .bookIsFull:
                throw SimulatorError(
                    description: "\(options.deviceTokensMax) device tokens are known already")
            }
        default: break
        }
        for mailbox in mailboxes { mailbox.post(.command(command)) }
    }

    /// Ends every connection with GOAWAY, flushes the log, and waits for the threads.
    package func stop() {
        let ended = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let ended else { return }
        for mailbox in ended.mailboxes { mailbox.post(.command(.stop)) }
        for thread in ended.threads { thread.join() }
    }

    package var counts: SimulatorCounts { shared.counters.counts }

    /// The requests kept so far, in the order of their answers on each connection.
    package var recordedRequests: [RecordedRequest] { shared.recorder.all }

    private func listen(port: UInt16) throws -> Socket {
        let address = try bindAddress(port: port)
        do throws(SystemError) { return try Socket.listening(on: address) } catch {
            let what =
                error.isAddressTaken
                ? "port \(port) on \(options.address) is taken: name another, or 0 for any that is free"
                : "port \(port) on \(options.address) cannot be listened on: \(error)"
            throw SimulatorError(description: what)
        }
    }

    private func bindAddress(port: UInt16) throws -> SocketAddress {
        let resolver = Resolver(waker: Waker())
        resolver.resolve(host: options.address, port: port, tag: 0)
        // A numeric address is resolved at once; a name is not accepted.
        guard let answer = resolver.collect().first, let address = try answer.result.get().first
        else { throw SimulatorError(description: "\(options.address) is no numeric address") }
        return address
    }

    private func startThread(
        _ index: Int, _ mailboxes: [SimulatorMailbox], listeners: [ListeningSocket]
    ) throws -> ServingThread {
        let shared = shared
        return ServingThread(
            try NamedThread.start(name: "apns-sim-\(index)") {
                do {
                    let loop = try SimulatorLoop(
                        shared: shared, mailbox: mailboxes[index], listeners: listeners,
                        peers: mailboxes)
                    loop.run()
                } catch {
                    // The process is out of descriptors, and connections dealt to this thread would
                    // hang.
                    fatalError("a serving thread cannot start: \(error)")
                }
            })
    }
}

/// Counts the rules in force, so that a script cannot add them without end.
private struct RuleLedger {
    static let rulesMax = 1000
    private var ends: [ContinuousClock.Instant?] = []

    init(_ rules: [ScriptedRule]) { replace(rules) }

    mutating func replace(_ rules: [ScriptedRule]) { ends = rules.map(Self.end) }

    /// Adds a rule; false if there are too many.
    mutating func add(_ rule: ScriptedRule) -> Bool {
        let now = ContinuousClock.now
        ends.removeAll { $0.map { $0 <= now } ?? false }
        guard ends.count < Self.rulesMax else { return false }
        ends.append(Self.end(rule))
        return true
    }

    private static func end(_ rule: ScriptedRule) -> ContinuousClock.Instant? {
        rule.lasting.map { .now + $0 }
    }
}
