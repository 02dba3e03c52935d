// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ServiceLifecycle

extension ServiceGroup {
    /// Runs the services until they end or are asked to. SIGTERM and SIGINT may come before the group
    /// listens for them, so it is told of each by `StopLimit`, too. To be asked twice is to be asked once.
    /// - Parameter requests: those of `StopLimit`.
    func run(endedBy requests: AsyncStream<Void>) async throws {
        let listening = Task {
            for await _ in requests { await triggerGracefulShutdown() }
        }
        defer { listening.cancel() }
        try await run()
    }
}
