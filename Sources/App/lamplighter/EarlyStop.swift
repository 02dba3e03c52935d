// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LinuxIO
import ServiceLifecycle

/// Ends its group at once if SIGTERM or SIGINT has come before the group listened for them.
///
/// A group starts its services when it listens, so none falls between `StopRequests` and the group.
struct EarlyStop: Service {
    /// How long the stop may take.
    let limit: @Sendable () -> Duration

    func run() async throws {
        guard StopRequests.received == 0 else { return StopWatch.limit(limit()) }
        try? await gracefulShutdown()
    }
}

extension ServiceGroupConfiguration.ServiceConfiguration {
    static func earlyStop(within limit: @escaping @Sendable () -> Duration) -> Self {
        .init(
            service: EarlyStop(limit: limit), successTerminationBehavior: .gracefullyShutdownGroup)
    }
}
