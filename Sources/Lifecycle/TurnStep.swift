// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The steps of a worker's turn, in order. They follow a push's journey backwards, so that room is
/// made before it is filled.
package enum TurnStep: CaseIterable, Sendable {
    case outcomes
    /// Kafka's acknowledgements of records.
    case acknowledgements
    /// Registrations and suppressions.
    case tables
    case events
    /// What is due by the clock.
    case timers
    case fanOuts
    case handOver
    /// Records are produced.
    case records
    /// Offsets are committed.
    case offsets
    case watch
    /// Rebalances, restarts and the stop: last, so that they find what the turn has ended.
    case lifecycle

    /// The steps in order; kept, since each call of `allCases` makes a new array.
    package static let order = allCases
}

/// How much of each kind of work a turn does at most: it stays under a few milliseconds.
package enum TurnBudget {
    package static let events = 512
    package static let tableRecords = 512
    package static let fanOutSteps = 2048
}
