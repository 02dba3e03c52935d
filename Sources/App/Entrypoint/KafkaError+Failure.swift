// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog

extension KafkaError: ReportedError {
    package var failure: Failure { Failure(status, "\(self)") }

    private var status: Failure.Status {
        switch self {
        case .noToken(let failure): failure.kind == .refused ? .configuration : .unavailable
        case .noConnection(let failure):
            failure.isConfiguration ? .configuration : .unavailable
        case .unreachable, .client: .unavailable
        case .forbidden, .unknownProperty, .invalidProperty, .refusedProperty, .missingProperty,
            .refusedTogether, .missingTopic, .unsupported, .topicExists:
            .configuration
        }
    }
}
