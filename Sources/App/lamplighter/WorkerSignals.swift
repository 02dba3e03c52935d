// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals
import Worker

/// Handles the signals of a running worker besides SIGTERM and SIGINT, which stop it in order:
/// SIGHUP reloads the configuration, SIGUSR1 makes the worker write its counters, and SIGUSR2 is
/// ignored, so that none of them ends the process.
struct WorkerSignals: Service, CustomStringConvertible {
    static let trapped: [UnixSignal] = [.sighup, .sigusr1, .sigusr2]

    let worker: LamplighterWorker
    let options: ConfigurationOption
    let log: LiveLog
    let logger: Logger

    var description: String { "signals" }

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: Self.trapped)
        for await signal in signals.cancelOnGracefulShutdown() {
            switch signal {
            case .sighup: reload()
            case .sigusr1: worker.control.requestReport()
            default: logger.notice("a signal is ignored", metadata: ["signal": "\(signal)"])
            }
        }
    }

    /// Reloads the configuration. If it has any problem, nothing of it is adopted.
    private func reload() {
        let configuration: Configuration
        do throws(InvalidConfiguration) {
            configuration = try options.load()
        } catch {
            for problem in error.problems {
                logger.error(
                    "the configuration to reload has a problem", metadata: ["problem": "\(problem)"]
                )
            }
            logger.error(
                "the configuration is not reloaded: the current one stays in effect",
                metadata: ["problems": .stringConvertible(error.problems.count)])
            return
        }
        let changes = worker.reload(configuration)
        log.apply(worker.configuration.log)
        audit(changes)
    }

    private func audit(_ changes: [ConfigurationChange]) {
        guard !changes.isEmpty else {
            return logger.notice("the configuration is reloaded: nothing has changed")
        }
        let applied = changes.filter(\.isApplied), waiting = changes.filter { !$0.isApplied }
        var metadata: Logger.Metadata = ["applied": "\(Self.list(applied))"]
        guard !waiting.isEmpty else {
            return logger.notice("the configuration is reloaded", metadata: metadata)
        }
        metadata["notApplied"] = "\(Self.list(waiting))"
        logger.warning(
            "the configuration is reloaded in part: restart the worker to apply the rest",
            metadata: metadata)
    }

    /// The most changes shown in one line.
    private static let listedMax = 50

    /// The changes as text: `delivery.attemptsMax: 10 -> 5, log.level: info -> debug`.
    private static func list(_ changes: [ConfigurationChange]) -> String {
        if changes.isEmpty { return "none" }
        let listed = changes.prefix(listedMax).map(\.description).joined(separator: ", ")
        return changes.count <= listedMax
            ? listed : "\(listed) and \(changes.count - listedMax) more"
    }
}
