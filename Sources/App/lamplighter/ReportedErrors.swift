// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
internal import Configuration
package import Entrypoint
package import KafkaLog
package import Worker

// Exit codes of this program's errors. `KafkaError` has its own in Entrypoint, since both programs
// throw it.

extension TopicEditor.Failure: ReportedError {
    package var failure: Entrypoint.Failure { .init(.unavailable, "\(self)") }
}

extension RefusedWrite: ReportedError {
    package var failure: Failure {
        Failure(isConfiguration ? .configuration : .unavailable, "\(self)")
    }
}

extension InvalidConfiguration: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension SigningKeyError: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension ProviderTokenError: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self): \(remedy)") }
}

extension ServiceFailure: ReportedError {
    package var failure: Failure {
        switch self {
        case .kafka(let error): error.failure
        case .addressSpace, .listener, .topic, .configuration: Failure(.configuration, "\(self)")
        default: Failure(.temporary, "\(self)")
        }
    }
}
