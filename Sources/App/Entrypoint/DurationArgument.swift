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
            guard duration <= Self.durationMax else { return nil }
            self.duration = duration
        } else if let seconds = Double(argument), (0...Self.secondsMax).contains(seconds) {
            duration = .seconds(seconds)
        } else {
            return nil
        }
    }

    /// Reads an option's text; for an option with a `transform`, whose error then names the range.
    ///
    /// - Throws: `ValidationError` for anything but a duration from `least` to a year.
    package init(_ text: String, atLeast least: Duration) throws {
        guard let argument = Self(argument: text), argument.duration >= least else {
            throw ValidationError(
                "it is a duration from \(least.notation) to \(Self.durationMax.notation), such as "
                    + "30s or 2h; a bare number is seconds")
        }
        self = argument
    }

    /// The longest duration accepted: a year.
    private static let secondsMax = 366.0 * 86_400
    private static let durationMax = Duration.seconds(366 * 86_400)

    package var seconds: Double { duration / .seconds(1) }

    /// The default as the help shows it.
    package var defaultValueDescription: String { duration.notation }
}
