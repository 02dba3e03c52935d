// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Configuration
internal import KafkaLog
internal import LinuxIO
package import Logging
internal import Pipeline
internal import ServiceLifecycle

/// Follows the topics of registrations and suppressions, and writes the index to a file from time to
/// time: `lamplighter index keep`. Workers on the same machine begin with it. It sends nothing, writes
/// nothing to Kafka, and is in no group.
package struct IndexKeeper: Service, CustomStringConvertible {
    private let plan: WorkerPlan
    private let logger: Logger
    private let stop = StopFlag()

    package var description: String { "index keeper" }

    /// - Throws: `ServiceFailure` if no directory is configured.
    package init(configuration: Configuration, logger: Logger) throws {
        guard configuration.index.snapshotDirectory != nil else {
            throw ServiceFailure.configuration(
                "index.snapshotDirectory is not set: it says where the index is to be kept")
        }
        plan = WorkerPlan(configuration)
        self.logger = logger
    }

    /// Returns when it was asked to stop, after the index was written once more.
    package func run() async throws {
        try await withGracefulShutdownHandler {
            try await AwaitedAnswer.onThread(named: "index-keeper") { Result { try follow() } }
                .get()
        } onGracefulShutdown: {
            stop.raise()
        }
    }

    private func follow() throws {
        do {
            var start = IndexStart(plan, logger: logger)
            let tables = try TableReader(
                settings: plan.kafka, topics: plan.snapshotTopics, from: start.tables,
                now: PlannerLoop.clock(), logger: logger)
            defer { tables.close(timeout: .seconds(2)) }
            guard let use = start.use else {
                preconditionFailure("an index is kept only where a directory is configured")
            }
            var loop = try KeeperLoop(plan, tables, use, stop: stop, logger: logger)
            if let index = start.takeIndex() { loop.pipeline.begin(with: index) }
            try loop.run()
        } catch let error as KafkaError {
            throw ServiceFailure.kafka(error)
        }
    }
}
