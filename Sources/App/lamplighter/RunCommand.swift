// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import LinuxIO
import Logging
import ServiceLifecycle
import UnixSignals
import Worker

struct RunCommand: AsyncParsableCommand, StopsInOrder {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Runs one worker of the fleet until SIGTERM or SIGINT.",
        discussion: """
            SIGTERM and SIGINT end the worker in order: what is under way is sent, offsets are \
            stored, the group is left.

            SIGHUP reads the configuration again. With any mistake in it nothing changes, and each \
            mistake is logged; otherwise one line says which keys have changed, which of them are \
            in force at once, and which wait for a restart (docs/configuration.md marks them).

            SIGUSR1 writes the counters to the log; SIGUSR2 is ignored.
            """)

    @OptionGroup var options: ConfigurationOption

    func run() async throws {
        Allocator.returnFreedMemory()
        // The signals must not end the process before they are trapped, below.
        Signals.ignore(WorkerSignals.trapped.map(\.rawValue))
        StopRequests.count([SIGTERM, SIGINT])
        let configuration = try options.load()
        let source = Self.source(configuration)
        let log = LiveLog(configuration.log, source: source)
        let logger = log.logger
        logger.notice("starting", metadata: start(configuration, source))
        for notice in configuration.notices {
            logger.warning(
                "something in the configuration needs attention", metadata: ["notice": "\(notice)"])
        }
        let worker = try LamplighterWorker(
            configuration: configuration,
            build: ServiceBuild(version: Version.number, commit: Version.commit), source: source,
            log: log, logger: logger)
        let limit: @Sendable () -> Duration = {
            WorkerPlan.stopLimit(worker.configuration.delivery.shutdownTimeout)
        }
        let stop = try StopLimit(limit)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                // Services stop from the last to the first, so signals are handled to the end.
                services: [
                    .init(
                        service: WorkerSignals(
                            worker: worker, options: options, log: log, logger: logger)),
                    .init(
                        service: worker, successTerminationBehavior: .gracefullyShutdownGroup),
                ],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run(endedBy: stop.requests)
        // The group handles no more signals, and its memory takes a while to be freed.
        Signals.ignore([SIGTERM, SIGINT])
        stop.stopped()
        logger.notice("stopped")
    }

    private static func source(_ configuration: Configuration) -> LogSource {
        let process = ProcessInfo.processInfo
        return LogSource(
            worker: configuration.workerName(
                host: process.hostName, process: process.processIdentifier),
            version: Version.number, group: configuration.kafka.group)
    }

    /// The metadata of the start line: what an operator compares first if two workers behave
    /// differently.
    private func start(_ configuration: Configuration, _ source: LogSource) -> Logger.Metadata {
        var libraries: Logger.Metadata = [:]
        for library in Version.libraries { libraries[library.name] = "\(library.version)" }
        let apps = Set(configuration.apns.credentials.values.flatMap(\.apps)).sorted()
        return [
            "version": "\(Version.number)", "commit": "\(Version.commit)",
            "libraries": .dictionary(libraries),
            "configuration": "\(options.file ?? "the environment alone")",
            "worker": "\(source.worker ?? "")", "group": "\(source.group ?? "")",
            "apps": .array(apps.map { "\($0)" }),
            "transport": "\(configuration.apns.chosenTransport)",
        ]
    }
}
