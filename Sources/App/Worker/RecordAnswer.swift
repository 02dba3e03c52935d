// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// What Kafka, or the producer in its place, has said of a record of ours.
enum RecordAnswer: Equatable {
    case acknowledged
    /// It will never be taken as it is.
    case tooLarge
    /// It may be taken another time. The cause is in Kafka's words.
    case refused(cause: String)

    init(_ error: ErrorCode?) {
        self =
            switch error {
            case nil: .acknowledged
            case .messageTooLarge: .tooLarge
            case let code?: .refused(cause: code.name)
            }
    }

    /// Why its topic takes nothing; nil where it does, or where only the record is to blame.
    var cause: String? { if case .refused(let cause) = self { cause } else { nil } }
}
