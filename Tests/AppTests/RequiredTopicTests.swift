// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Configuration
@testable internal import KafkaLog
@testable internal import Worker

@Suite struct `Required topics` {
    private func kafka() throws -> Configuration.Kafka { try configuration("").kafka }

    private func description(_ name: String, _ settings: [String: String]) -> TopicDescription {
        TopicDescription(name: name, partitionCount: 12, replication: 3, configuration: settings)
    }

    @Test func `the four topics that are read as tables are compacted, and nothing else`()
        throws
    {
        let kafka = try kafka()
        #expect(
            RequiredTopic.compacted(kafka).map(\.name) == [
                kafka.topics.registrations, kafka.topics.suppressions, kafka.topics.deferred,
                kafka.topics.restrictions,
            ])
        let names = RequiredTopic.all(kafka).map(\.name)
        #expect(names.contains(kafka.topics.deadLetters))
        #expect(Set(names).count == names.count)
    }

    @Test(arguments: ["delete", "compact,delete", "delete,compact", ""])
    func `a policy that deletes what is in effect is wrong, and the remedy is named`(
        policy: String
    ) throws {
        for topic in RequiredTopic.compacted(try kafka()) {
            let problem = try #require(
                topic.wrongPolicy(description(topic.name, ["cleanup.policy": policy])))
            #expect(problem.hasPrefix("\(topic.name) has cleanup.policy=\(policy), and must have"))
            #expect(
                problem.hasSuffix("--entity-name \(topic.name) --add-config cleanup.policy=compact")
            )
        }
    }

    @Test func `a policy that is right or not known is not wrong`() throws {
        for topic in RequiredTopic.compacted(try kafka()) {
            #expect(
                topic.wrongPolicy(description(topic.name, ["cleanup.policy": "compact"])) == nil)
            #expect(topic.wrongPolicy(description(topic.name, [:])) == nil)
        }
    }

    @Test func `all settings are compared`() throws {
        let topic = RequiredTopic.compacted(try kafka())[0]
        var finding = RequiredTopic.Finding()
        topic.compare(
            description(
                topic.name,
                [
                    "cleanup.policy": "delete", "message.timestamp.type": "CreateTime",
                    "min.insync.replicas": "2",
                ]), &finding)
        #expect(finding.problems.count == 2)
        #expect(finding.warnings.isEmpty)
    }

    @Test
    func `tombstones of registrations and suppressions last for two days, and for one at least`()
        throws
    {
        for topic in RequiredTopic.all(try kafka()) {
            let isRead = ["registrations", "suppressions"].contains { topic.name.hasSuffix($0) }
            #expect(
                topic.configuration["delete.retention.ms"] == (isRead ? "172800000" : nil),
                "\(topic.name)")
            for (milliseconds, isWarned) in [("86399999", isRead), ("86400000", false)] {
                var finding = RequiredTopic.Finding()
                var settings = topic.configuration
                settings["delete.retention.ms"] = milliseconds
                settings["min.insync.replicas"] = "2"
                topic.compare(description(topic.name, settings), &finding)
                #expect(finding.problems.isEmpty)
                #expect(finding.warnings.isEmpty != isWarned, "\(topic.name)")
            }
        }
    }
}
