// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel

extension SnapshotConditions {
    /// Asks Kafka; nil, with a line in the log, if it does not answer.
    static func ask(_ plan: WorkerPlan, logger: Logger) -> SnapshotConditions? {
        do throws(KafkaError) {
            let admin = try TopicAdmin(settings: plan.kafka, logger: logger)
            let cluster = admin.clusterID
            var topics: [SnapshotTopic] = []
            for name in plan.snapshotTopics {
                topics.append(try SnapshotTopic(name, admin, logger: logger))
            }
            return SnapshotConditions(
                cluster: cluster, topics: topics, routing: plan.snapshotFingerprint,
                now: PlannerLoop.clock().wall)
        } catch {
            logger.warning(
                "cannot ask Kafka whether the snapshot of the index may be used",
                metadata: ["cause": "\(error)"])
            return nil
        }
    }
}

extension SnapshotTopic {
    fileprivate init(
        _ name: String, _ admin: TopicAdmin, logger: Logger
    ) throws(KafkaError) {
        self.init(
            name: name, logs: try admin.logs(of: name), tombstonesLast: nil, hasBrokerTimes: nil)
        do throws(KafkaError) {
            let description = try admin.describe(name)
            tombstonesLast = description.deleteRetention
            hasBrokerTimes = description.timestampType.map { $0 == "LogAppendTime" }
        } catch .unsupported {
            // The embedded Kafka compacts nothing: any age would do.
            tombstonesLast = Self.usualRetention
        } catch .forbidden {
            return
        }
    }

    /// Kafka's default of `delete.retention.ms`.
    private static let usualRetention = Duration.seconds(24 * 3600)
}

extension WorkerPlan {
    /// The topics whose records are in a snapshot, in the order of its stamp. Their positions are those
    /// of `tableTopics`.
    var snapshotTopics: [String] {
        [tableTopics[Self.registrationsTable], tableTopics[Self.suppressionsTable]]
    }

    var snapshotFingerprint: StableHash.Value {
        PushPipeline.fingerprint(routing: routing, settings: pipeline)
    }
}
