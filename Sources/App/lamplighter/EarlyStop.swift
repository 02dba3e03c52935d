// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LinuxIO
import ServiceLifecycle

/// Ends its group at once if SIGTERM or SIGINT has come before the group listened for them.
///
/// A group starts its services when it listens, so none falls between `StopRequests` and the group.
struct EarlyStop: Service {
    func run() async throws {
        guard StopRequests.received == 0 else { return }
        try? await gracefulShutdown()
    }
}

extension ServiceGroupConfiguration.ServiceConfiguration {
    static var earlyStop: Self {
        .init(service: EarlyStop(), successTerminationBehavior: .gracefullyShutdownGroup)
    }
}
