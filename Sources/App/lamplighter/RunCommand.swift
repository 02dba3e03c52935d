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
        abstract: "Runs one worker of the fleet until SIGTERM or SIGINT.")

    @OptionGroup var options: ConfigurationOption

    func run() async throws {
        Allocator.returnFreedMemory()
        try await Failure.reporting {
            let configuration = try options.load()
            let logger = ConfigurationOption.logger(configuration.log)
            let worker = try LamplighterWorker(configuration: configuration, logger: logger)
            let group = ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: [
                        .init(
                            service: worker, successTerminationBehavior: .gracefullyShutdownGroup)
                    ],
                    gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
            try await group.run()
            logger.notice("stopped")
        }
    }
}
