// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The least time between two pushes without a payload to one token (`planning.minimumGap`), by their
/// type. Zero is none.
package struct MinimumGaps: Sendable, Equatable {
    private var gaps: [PushType: Duration]
    /// Of single apps, instead of the above.
    package var apps: [String: OfApp] = [:]

    /// - Parameter gaps: those for all apps; a type that is left out has none.
    package init(_ gaps: [PushType: Duration] = [:]) { self.gaps = gaps }

    /// Of all apps that have none of their own.
    package subscript(type: PushType) -> Duration {
        get { gaps[type] ?? .zero }
        set { gaps[type] = newValue }
    }

    package func gap(_ type: PushType, app: String) -> Duration { apps[app]?[type] ?? self[type] }

    /// Of one app; nil where that for all apps is in force.
    package struct OfApp: Sendable, Equatable {
        private var gaps: [PushType: Duration]

        package init(_ gaps: [PushType: Duration] = [:]) { self.gaps = gaps }

        package subscript(type: PushType) -> Duration? {
            get { gaps[type] }
            set { gaps[type] = newValue }
        }
    }
}
