// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LinuxIO
import ServiceLifecycle

/// Ends its group if SIGTERM or SIGINT has come before the group listened for them: until `StopLimit`
/// listens they are counted by `StopRequests`, and from then on it tells of each.
struct EarlyStop: Service {
    /// `StopLimit`'s.
    let requests: AsyncStream<Void>
    /// How long the stop may take.
    let limit: @Sendable () -> Duration

    func run() async throws {
        guard StopRequests.received == 0 else { return StopWatch.limit(limit()) }
        for await _ in requests.cancelOnGracefulShutdown() { return }
    }
}

extension ServiceGroupConfiguration.ServiceConfiguration {
    static func early(
        _ stop: StopLimit, within limit: @escaping @Sendable () -> Duration
    ) -> Self {
        .init(
            service: EarlyStop(requests: stop.requests, limit: limit),
            successTerminationBehavior: .gracefullyShutdownGroup)
    }
}
