// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Logging

/// A log whose level an operator changes while the worker runs.
package protocol AdjustableLog: Sendable {
    /// The least severe level that is written.
    var level: Logger.Level { get }

    /// Changes the level until it is changed again, or the configuration is reloaded.
    func change(level: Logger.Level)
}
