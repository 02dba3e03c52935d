// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// What one delivery thread has done since it started. The counts only grow.
package struct TransportCounts: Sendable, Equatable {
    package var connects: UInt64 = 0
    /// Connects that failed, whatever the cause. The next two count two of the causes.
    package var connectFailures: UInt64 = 0
    package var certificatesRefused: UInt64 = 0
    package var http2Refused: UInt64 = 0
    package var goAways: UInt64 = 0
    /// Connections that ended while they had requests in flight.
    package var connectionsLost: UInt64 = 0
    package var requests: UInt64 = 0
    /// Requests that APNs refused unprocessed.
    package var refused: UInt64 = 0
    package var timeouts: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var bytesReceived: UInt64 = 0

    package init() {}
}

/// Publishes a delivery thread's counts to other threads, once per turn.
package final class TransportCounters: Sendable {
    private let counts = Mutex(TransportCounts())

    package init() {}

    package var snapshot: TransportCounts { counts.withLock { $0 } }

    func publish(_ new: TransportCounts) {
        counts.withLock { $0 = new }
    }
}
