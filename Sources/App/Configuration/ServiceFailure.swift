// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog

/// Why a worker or a registrar has failed.
package enum ServiceFailure: Error, CustomStringConvertible {
    /// Occurs only at start.
    case kafka(KafkaError)
    case clientFailed(String)
    /// Occurs only at start.
    case addressSpace(String)
    /// A listener of the configuration could not be opened.
    case listener(String)
    /// A topic has settings with which records would be lost. Occurs only at start.
    case topic(String)
    /// A key is not set that is needed, or has the value of another worker's that must be its own.
    case configuration(String)

    package var description: String {
        switch self {
        case .kafka(let error): error.description
        case .addressSpace(let reason), .listener(let reason), .topic(let reason),
            .configuration(let reason):
            reason
        case .clientFailed(let reason): "\(reason); start it again"
        }
    }
}
