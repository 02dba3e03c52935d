// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import LinuxIO
import Logging
import ServiceLifecycle
import Worker

struct IndexCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "index",
        abstract: "Keeps a copy of the index, with which workers start in seconds.",
        subcommands: [Keep.self])

    struct Keep: AsyncParsableCommand, StopsInOrder {
        static let configuration = CommandConfiguration(
            abstract:
                "Follows registrations and suppressions, and writes the index from time to time.",
            discussion: """
                It writes to index.snapshotDirectory, every index.snapshotEvery and when it stops, if \
                anything has changed. Workers on the same machine with the same configuration begin \
                with the file. It takes the memory of one index, sends nothing, writes nothing to \
                Kafka and is in no group; docs/snapshots.md.
                """)

        @OptionGroup var options: ConfigurationOption

        func run() async throws {
            Allocator.returnFreedMemory()
            StopRequests.count([SIGTERM, SIGINT])
            let configuration = try options.load()
            let log = LiveLog(configuration.log)
            let logger = log.logger
            logger.notice(
                "starting",
                metadata: [
                    "version": "\(Version.number)", "commit": "\(Version.commit)",
                    "configuration": "\(options.file ?? "the environment alone")",
                ])
            let keeper = try IndexKeeper(configuration: configuration, logger: logger)
            // A file of many gigabytes takes its time.
            try await ServiceGroup.run(keeper, stopping: .seconds(120), logger: logger)
        }
    }
}
