// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux

/// What a process says when it ends by a trap, an abort or a bad address: an optimised build strips
/// the messages of failed checks, so without this it says nothing.
package enum CrashReport {
    /// From now on such an end writes one line to standard error and gives exit code 70. Where the
    /// variable `SWIFT_BACKTRACE` is set the line comes first, and then Swift's stack trace or the
    /// core dump. Call it before there are threads.
    ///
    /// - Parameters:
    ///   - program: how the line begins.
    ///   - version: how it ends.
    package static func install(program: String, version: String) {
        CLinux_reportCrashes(program, version)
    }
}
