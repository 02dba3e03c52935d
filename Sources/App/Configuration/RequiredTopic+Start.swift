// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog
package import Logging

extension RequiredTopic {
    /// Throws if Kafka would delete what is in effect of one of the topics, which must be compacted.
    package static func refuseUncompacted(
        _ topics: [RequiredTopic], settings: KafkaClientSettings, logger: Logger
    ) throws(ServiceFailure) {
        for topic in topics {
            let problem: String?
            do throws(KafkaError) {
                let admin = try TopicAdmin(settings: settings, logger: logger)
                problem = topic.wrongPolicy(try admin.describe(topic.name))
            } catch .unsupported {
                return  // The embedded Kafka cannot be asked, and compacts nothing.
            } catch {
                // A program that may not ask, or gets no answer, says so and starts.
                logger.warning(
                    "cannot check whether a topic is compacted",
                    metadata: ["topic": "\(topic.name)", "cause": "\(error)"])
                guard case .forbidden = error else { return }
                continue
            }
            if let problem { throw ServiceFailure.topic(problem) }
        }
    }

    /// That of registrations.
    package static func registrations(_ kafka: Configuration.Kafka) -> RequiredTopic {
        compacted(kafka)[0]
    }
}
