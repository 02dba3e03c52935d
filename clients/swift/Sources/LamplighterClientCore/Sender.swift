// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// Sends what waits in the outbox while the process runs.
actor Sender {
    struct Environment: Sendable {
        var now: @Sendable () -> Date = { Date() }
        var sleep: @Sendable (TimeInterval) async throws -> Void = {
            try await Task.sleep(nanoseconds: UInt64($0 * 1e9))
        }
        var random: @Sendable () -> Double = { .random(in: 0...1) }
    }

    /// What one pass over the outbox left.
    private enum Rest {
        case nothing
        /// Seconds, if the registrar says how long.
        case later(TimeInterval?)
    }

    /// How often one snapshot's sequence is raised in one pass. Two processes that raise in turn end
    /// after one each; more means that something else writes under the same installation.
    private static let raisesMax = 4

    private let outbox: Outbox
    private let registrar: URL
    private let transport: any Transport
    private let authorizer: any Authorizer
    private let secrets: any SecretStore
    private let backoff: Backoff
    private let environment: Environment
    private let conclusion: Conclusion
    private let report: @Sendable (ClientEvent) -> Void
    private var running: Task<Rest, Never>?

    init(
        outbox: Outbox, registrar: URL, transport: any Transport, authorizer: any Authorizer,
        secrets: any SecretStore, backoff: Backoff, environment: Environment,
        report: @escaping @Sendable (ClientEvent) -> Void
    ) {
        self.outbox = outbox
        self.registrar = registrar
        self.transport = transport
        self.authorizer = authorizer
        self.secrets = secrets
        self.backoff = backoff
        self.environment = environment
        self.report = report
        conclusion = Conclusion(outbox: outbox, now: environment.now, report: report)
    }

    /// Sends until nothing waits, with pauses after failures.
    ///
    /// - Parameter patience: Seconds after which no further try begins.
    /// - Returns: Whether nothing waits any more.
    func flush(patience: TimeInterval) async -> Bool {
        let deadline = environment.now().addingTimeInterval(patience)
        var failures = 0
        while true {
            if let notBefore = try? outbox.notBefore() {
                let wait = notBefore.timeIntervalSince(environment.now())
                guard await pause(wait, until: deadline) else { return false }
            }
            switch await pass() {
            case .nothing:
                return true
            case .later(let retryAfter):
                failures += 1
                let random = environment.random()
                var delay = backoff.delay(failures: failures, random: random)
                if let retryAfter {
                    delay = backoff.delay(retryAfter: retryAfter, random: random)
                    try? outbox.wait(until: environment.now().addingTimeInterval(delay))
                }
                guard await pause(delay, until: deadline) else { return false }
            }
        }
    }

    private func pause(_ seconds: TimeInterval, until deadline: Date) async -> Bool {
        guard seconds > 0 else { return !Task.isCancelled }
        guard environment.now().addingTimeInterval(seconds) <= deadline else { return false }
        try? await environment.sleep(seconds)
        return !Task.isCancelled
    }

    /// One pass at a time: who comes while one runs waits, and then looks at what is left.
    private func pass() async -> Rest {
        while let running { _ = await running.value }
        let task = Task {
            let rest = await sendPending()
            running = nil
            return rest
        }
        running = task
        return await task.value
    }

    private func sendPending() async -> Rest {
        let pending: Outbox.Pending
        do {
            pending = try outbox.pending(of: secrets.installation())
        } catch {
            report(.outboxFailed(String(describing: error)))
            return .later(nil)
        }
        for url in pending.corrupt { report(.corrupt(url)) }
        for snapshot in pending.dropped { report(.dropped(snapshot)) }
        var rest = Rest.nothing
        for snapshot in pending.snapshots {
            do {
                if case .later(let seconds) = try await send(snapshot) {
                    rest = .later(seconds)
                    // The registrar asked for silence; without it the others may fare better, such as
                    // when one of its replicas is away.
                    if seconds != nil { return rest }
                }
            } catch let refusal as AppAttestAuthorizer.Refused
                where refusal.problem.name == "installationClaimed"
            {
                do {
                    try giveUp(snapshot, refusal.problem)
                } catch {
                    report(.outboxFailed(String(describing: error)))
                }
                return .later(nil)
            } catch {
                // No network, no credential: that is the same for all.
                report(.unanswered(String(describing: error)))
                return .later(nil)
            }
        }
        return rest
    }

    /// Goes on under a new identifier. What is to be removed under the old one never can be: it ends with
    /// its tokens, which a reinstallation has made invalid.
    private func giveUp(_ snapshot: Snapshot, _ problem: Problem) throws {
        guard snapshot.content != .removal else {
            try outbox.setAside(
                snapshot, reason: problem.detail ?? "the installation is another key's")
            return report(.refused(snapshot, problem))
        }
        if try outbox.renewInstallation(snapshot.address.installation, in: secrets) {
            report(.installationRenewed(problem))
        }
    }

    private func send(_ first: Snapshot) async throws -> Rest {
        var snapshot = first
        var refusal: CredentialRefusal?
        var raises = 0
        while true {
            var request = try snapshot.request(to: registrar)
            let headers = try await authorizer.headers(
                for: request, about: snapshot.address, after: refusal)
            request.headers.merge(headers) { _, new in new }
            switch try conclusion.step(after: await transport.send(request), to: snapshot) {
            case .done:
                return .nothing
            case .again(let raised):
                raises += 1
                guard raises < Self.raisesMax else { return .later(nil) }
                snapshot = raised
                refusal = nil
            case .renewCredential(let new):
                guard refusal == nil else {
                    report(.credentialRefused(new.problem))
                    return .later(nil)
                }
                refusal = new
            case .later(let seconds):
                return .later(seconds)
            }
        }
    }
}
