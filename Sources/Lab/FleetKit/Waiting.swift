// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Something that was waited for has not come.
package struct Timeout: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Asks again and again until the condition holds.
/// - Throws: `Timeout` when it does not in time, or what the condition throws.
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
