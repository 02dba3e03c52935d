// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How many pushes a token should be sent in a day of UTC (`planning.budget`).
package struct PushBudgets: Sendable, Equatable {
    private var limits: [PushType: Int] = [:]
    /// Whether pushes above it are thinned to the last one of a window.
    package var isThinning = false
    /// Lives that are simulated are shorter than a day.
    package var day = Duration.seconds(86_400)

    package init() {}

    /// Pushes a token and day; 0 for no budget.
    package subscript(type: PushType) -> Int {
        get { limits[type] ?? 0 }
        set { limits[type] = newValue }
    }
}
