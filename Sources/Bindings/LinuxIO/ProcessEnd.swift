// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// The end of a process some of whose threads are still at work.
package enum ProcessEnd {
    /// Writes what `print` has gathered, and ends the process without its exit handlers: those of a
    /// library free what its threads still use, or free as they end. OpenSSL's can be turned off, but a
    /// library may have an OpenSSL of its own linked into it.
    ///
    /// A sanitizer looks for leaks in an exit handler, and keeps them.
    package static func leave(_ status: Int32) -> Never {
        if CLinux_hasSanitizer() { exit(status) }
        fflush(nil)
        _exit(status)
    }
}
