// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

package enum Signals {
    /// Writing to a socket whose peer is gone then gives EPIPE instead of ending the process. Done
    /// once, before there are other threads: OpenSSL and libcurl both rely on it.
    package static func ignoreBrokenPipe() {
        signal(SIGPIPE, SIG_IGN)
    }
}
