// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSSimulator
package import Checker
package import EmbeddedKafka
package import Entrypoint
package import FleetKit

// Simulator errors, such as a port in use or a file that cannot be written, concern the caller's
// options.

extension SimulatorError: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension EmbeddedKafka.ProcessError: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension UnusablePath: ReportedError {
    package var failure: Failure { Failure(.configuration, "\(self)") }
}

extension MissingProgram: ReportedError {
    package var failure: Failure { Failure(.unavailable, "\(self)") }
}

extension UnreadableInput: ReportedError {
    package var failure: Failure { Failure(.unreadableInput, "\(self)") }
}
