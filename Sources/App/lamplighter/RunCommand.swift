// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import LinuxIO
import Logging
import ServiceLifecycle
import UnixSignals
import Worker

struct RunCommand: AsyncParsableCommand {
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
        try await Failure.reporting {
            // Until they are trapped, below.
            Signals.ignore(WorkerSignals.trapped.map(\.rawValue))
            let configuration = try options.load()
            let log = LiveLog(configuration.log)
            let logger = log.logger
            let worker = try LamplighterWorker(configuration: configuration, logger: logger)
            let group = ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    // They are stopped from the last to the first: signals are heard to the end.
                    services: [
                        .init(
                            service: WorkerSignals(
                                worker: worker, options: options, log: log, logger: logger)),
                        .init(
                            service: worker, successTerminationBehavior: .gracefullyShutdownGroup),
                    ],
                    gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
            try await group.run()
            logger.notice("stopped")
        }
    }
}
