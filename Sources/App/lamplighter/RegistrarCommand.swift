// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import LinuxIO
import Logging
import Registrar
import ServiceLifecycle

struct RegistrarCommand: AsyncParsableCommand, StopsInOrder {
    static let configuration = CommandConfiguration(
        commandName: "registrar",
        abstract:
            "Takes registrations over HTTP and writes them to Kafka.",
        discussion: """
            Apps, or their backends, PUT what each push handler of an installation shows. A request \
            is answered once Kafka has acknowledged the record. Any number of registrars share the \
            work; docs/registrar.md describes the interface, who may use it, and how to run it.
            """)

    @OptionGroup var options: ConfigurationOption

    func run() async throws {
        Allocator.returnFreedMemory()
        StopRequests.count([SIGTERM, SIGINT])
        let configuration = try options.load(for: .registrar)
        let log = LiveLog(configuration.log)
        let logger = log.logger
        logger.notice(
            "starting",
            metadata: [
                "version": "\(Version.number)", "commit": "\(Version.commit)",
                "configuration": "\(options.file ?? "the environment alone")",
                "group": "\(configuration.registrarGroup)",
            ])
        let registrar = try LamplighterRegistrar(
            configuration: configuration,
            build: ServiceBuild(version: Version.number, commit: Version.commit), logger: logger)
        try await ServiceGroup.run(
            registrar, stopping: LamplighterRegistrar.stopLimit, logger: logger)
    }
}
