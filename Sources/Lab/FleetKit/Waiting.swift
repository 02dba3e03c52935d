// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

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
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else {
            throw Timeout(description: "waited \(limit) for \(what)")
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}
