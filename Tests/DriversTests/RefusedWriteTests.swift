// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import Rdkafka
import Testing

@Suite struct `A refused write` {
    @Test func `a missing right is named with its topic, and where rights are described`() {
        let refused = RefusedWrite(topic: "restrictions", ErrorCode.topicAuthorizationFailed)
        #expect(refused.isConfiguration)
        #expect(
            refused.description
                == "Kafka does not allow this user WRITE on topic 'restrictions': see Rights in "
                + "docs/kafka.md")
    }

    @Test(arguments: [ErrorCode.unknownTopic, .unknownTopicOrPartition])
    func `a topic that is missing may be one without a right on it`(code: ErrorCode) {
        let refused = RefusedWrite(topic: "restrictions", RdkafkaError(code))
        #expect(refused.isConfiguration)
        for words in [
            "no topic 'restrictions', or hides it", "lamplighter topics create", "WRITE on it",
            "Rights in docs/kafka.md",
        ] {
            #expect(refused.description.contains(words), "\(refused)")
        }
    }

    @Test func `another error is told in the library's words`() {
        let refused = RefusedWrite(topic: "restrictions", ErrorCode.messageTooLarge)
        #expect(!refused.isConfiguration)
        #expect(
            refused.description.hasPrefix("Kafka refused the record for topic 'restrictions': "))
        #expect(refused.description.contains("MSG_SIZE_TOO_LARGE"))
    }
}
