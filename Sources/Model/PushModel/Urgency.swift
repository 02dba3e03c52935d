// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How soon somebody looks at what a push is about. It orders the pushes of a pool, most urgent
/// first.
package enum Urgency: UInt8, CaseIterable, Comparable, Sendable, BitwiseCopyable {
    /// Somebody waits for it, or is to be called: a control that was pressed, an alert, a call, a
    /// Live Activity.
    case immediate
    /// Somebody looks at it now and then: a widget, a complication.
    case glance
    /// Nobody sees it: work that an app does for later.
    case background

    package static func < (left: Urgency, right: Urgency) -> Bool { left.rawValue < right.rawValue }

    /// That of a push type that says nothing else, by its `apns-priority`: 10 is for what is shown
    /// at once.
    init(priority: UInt8) { self = priority == 10 ? .immediate : .background }
}
