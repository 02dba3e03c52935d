// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import KafkaLog
import Logging
import Worker

/// The rights in Kafka that a worker needs at least. docs/kafka.md has them as rules for a broker.
struct NeededRights {
    let group: String
    let read: [String]
    let write: [String]
    /// The topic for shards, to which WRITE is optional; nil if there is none.
    let shards: String?
    /// The topic of outcomes, to which WRITE is optional too; nil if there is none.
    let outcomes: String?

    init(_ configuration: Configuration) {
        let plan = WorkerPlan(configuration)
        group = configuration.kafka.group
        guard !plan.isShadow else {
            read = plan.eventTopics + plan.tableTopics
            (write, shards, outcomes) = ([], nil, nil)
            return
        }
        read = plan.eventTopics + plan.tableTopics + [plan.deferredTopic]
        // The first three are suppressions, dead letters and deferred pushes. Shards go to an event
        // topic, and so do canaries, which need the right. Where the first that is tried stores a
        // record, compaction takes it away again.
        let produced = plan.producedTopics
        let canaries = plan.canaryTopic
        write = [produced[0], produced[2], produced[1]] + (canaries.map { [$0] } ?? [])
        shards = produced.dropFirst(3).first { $0 != canaries }
        outcomes = plan.outcomesTopic
    }

    struct Finding {
        var problems: [String] = []
        var warnings: [String] = []
    }

    /// Tests the rights.
    ///
    /// - Parameter missing: topics that do not exist and need not be tested.
    func look(
        _ configuration: Configuration, without missing: Set<String>, logger: Logger
    ) throws -> Finding {
        let probe = RightsProbe(settings: configuration.kafka.clientSettings, logger: logger)
        func there(_ topics: [String]) -> [String] { topics.filter { !missing.contains($0) } }
        var finding = Finding()
        let readable = there(read)
        if !readable.isEmpty {
            judge(try probe.reading(readable), readable, "READ", &finding)
            judge(
                [group: try probe.group(readable[0])], [group], "READ", of: "group", &finding)
        }
        let writable = there(write + [shards, outcomes].compactMap { $0 })
        if !writable.isEmpty {
            judge(try probe.writing(writable), writable, "WRITE", &finding)
        }
        return finding
    }

    private func judge(
        _ answers: [String: RightsProbe.Answer], _ names: [String], _ right: String,
        of kind: String = "topic", _ finding: inout Finding
    ) {
        for name in names {
            switch answers[name] {
            case .allowed: break
            case .refused where right == "WRITE" && name == shards:
                finding.warnings.append(
                    "Kafka does not allow this user WRITE on topic '\(name)': an event of more than "
                        + "planning.splitAbove tokens is sent by one worker alone")
            case .refused where name == outcomes:
                finding.warnings.append(
                    "Kafka does not allow this user WRITE on topic '\(name)': outcomes of pushes are "
                        + "dropped, and pushes go on")
            case .refused:
                finding.problems.append(
                    "Kafka does not allow this user \(right) on \(kind) '\(name)', which a worker "
                        + "needs; docs/kafka.md has the rights that are needed")
            case .unknown(let text):
                let why = text.isEmpty ? "no answer came" : text
                finding.warnings.append(
                    "cannot tell whether this user has \(right) on \(kind) '\(name)': \(why)")
            case nil: break
            }
        }
    }
}
