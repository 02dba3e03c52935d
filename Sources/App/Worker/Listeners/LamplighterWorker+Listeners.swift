// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Configuration
internal import HTTPListener
internal import LivePage
internal import Logging
internal import PushModel

extension LamplighterWorker {
    /// Serves what is configured until the task is cancelled: probes and metrics, and an operator's
    /// requests. A worker that cannot be watched as configured does not start.
    func listen() async throws {
        let listeners = listeners
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for listener in listeners {
                    group.addTask { try await serve(listener) }
                }
                if configuration.adminSettings != nil {
                    group.addTask { await status.keepHistory() }
                }
                // The first that fails ends the others.
                while try await group.next() != nil {}
            }
        } catch let error as HTTPListenerFailure {
            throw ServiceFailure.listener("\(error)")
        }
    }

    private var listeners: [HTTPListener] {
        let probes = Probes(control: control, delivery: ports.map(\.heartbeat))
        let health = configuration.healthSettings.map { settings in
            let health = HealthListener(probes: probes, source: status)
            return listener(settings, bound: "listening for probes and for requests of metrics") {
                await health.answer($0)
            }
        }
        let admin = configuration.adminSettings.map { settings in
            var settings = settings
            settings.openPaths = LivePage.paths
            let admin = AdminListener(
                probes: probes, source: status, explain: ExplainSource(control, plan: plan),
                log: log, logger: logger)
            return listener(settings, bound: "listening for requests of operators") {
                await admin.answer($0)
            }
        }
        return [health, admin].compactMap { $0 }
    }

    private func listener(
        _ settings: HTTPListenerSettings, bound message: Logger.Message,
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPAnswer
    ) -> HTTPListener {
        let isBound: @Sendable (Int) -> Void = { [logger] port in
            logger.notice(
                message,
                metadata: ["host": "\(settings.host)", "port": .stringConvertible(port)])
        }
        return HTTPListener(settings, isBound: isBound, answer: answer)
    }

    /// Serves until the task is cancelled. If a listener ends before, pushes go on.
    private func serve(_ listener: HTTPListener) async throws {
        var cause = "it was closed"
        do {
            try await listener.run()
        } catch let error as HTTPListenerFailure {
            throw error
        } catch {
            cause = "\(error)"
        }
        if !Task.isCancelled {
            logger.error("a listener has ended", metadata: ["cause": "\(cause)"])
        }
    }
}
