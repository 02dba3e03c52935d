// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import ArgumentParser
internal import PushModel

/// A duration argument in the configuration's notation (`500ms`, `30s`, `10m`); a bare number means
/// seconds.
package struct DurationArgument: ExpressibleByArgument {
    package let duration: Duration

    package init(_ duration: Duration) { self.duration = duration }

    package init?(argument: String) {
        if let duration = Duration(notation: argument) {
            self.duration = duration
        } else if let seconds = Double(argument), (0...Self.secondsMax).contains(seconds) {
            duration = .seconds(seconds)
        } else {
            return nil
        }
    }

    /// The longest duration accepted: a year.
    private static let secondsMax = 366.0 * 86_400

    package var seconds: Double { duration / .seconds(1) }

    /// The default as the help shows it.
    package var defaultValueDescription: String { duration.notation }
}
