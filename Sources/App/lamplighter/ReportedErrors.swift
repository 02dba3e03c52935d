// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Entrypoint
package import KafkaLog
package import Worker

// What the reader of each error can do about it. `KafkaError` is sorted in Entrypoint, since both
// programs meet it.

extension TopicEditor.Failure: ReportedError {
    package var failure: Entrypoint.Failure { .init(.unavailable, "\(self)") }
}

extension InvalidConfiguration: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension SigningKeyError: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension WorkerFailure: ReportedError {
    package var failure: Failure {
        switch self {
        case .kafka(let error): error.failure
        case .addressSpace: Failure(.configuration, "\(self)")
        default: Failure(.temporary, "\(self)")
        }
    }
}
