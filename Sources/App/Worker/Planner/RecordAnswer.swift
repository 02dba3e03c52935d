// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// What Kafka, or the producer, reports about a record that the worker writes.
enum RecordAnswer: Equatable {
    case acknowledged
    /// The record is too large and will never be accepted.
    case tooLarge
    /// The record was refused, but may be accepted later. The cause is the name of Kafka's error.
    case refused(cause: String)

    init(_ error: ErrorCode?) {
        self =
            switch error {
            case nil: .acknowledged
            case .messageTooLarge: .tooLarge
            case let code?: .refused(cause: code.name)
            }
    }

    /// Why the topic accepts nothing; nil if it does, or if only this record is at fault.
    var cause: String? { if case .refused(let cause) = self { cause } else { nil } }
}
