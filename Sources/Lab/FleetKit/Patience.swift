// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// How long one waits for what ought to come before one says that it does not. It is over when its limit
/// has passed on the clock, and then once more as a `Stopwatch` counts it: on a machine that has three
/// times as much to do as it can, it lasts four times the limit. So whether something comes
/// does not depend on how busy the machine is, and waiting costs nothing until the limit has passed.
package final class Patience: Sendable {
    private let limit: Duration
    private let start = ContinuousClock.now
    /// Runs since the limit has passed.
    private let stopwatch = Mutex<Stopwatch?>(nil)

    package init(_ limit: Duration = .seconds(60)) { self.limit = limit }

    package var isOver: Bool {
        guard ContinuousClock.now - start >= limit else { return false }
        let running = stopwatch.withLock { stopwatch in
            let running = stopwatch ?? Stopwatch()
            stopwatch = running
            return running
        }
        return running.time >= limit
    }
}

/// An expected condition did not occur in time.
package struct Timeout: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Polls a condition until it holds.
/// - Throws: `Timeout` if it does not hold in time, or what the condition throws.
package func waitUntil(
    _ what: String, within limit: Duration = .seconds(60), _ condition: () throws -> Bool
) async throws {
    let patience = Patience(limit)
    while true {
        let asked = ContinuousClock.now
        if try condition() { return }
        guard !patience.isOver else {
            throw Timeout(description: "waited \(limit) for \(what)")
        }
        // A condition that takes long, such as a search through a log, is to leave most of a core to
        // what it waits for.
        let pause = (ContinuousClock.now - asked) * 4
        try await Task.sleep(for: min(max(.milliseconds(10), pause), .milliseconds(100)))
    }
}
