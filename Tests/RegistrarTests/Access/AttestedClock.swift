// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LinuxIO
import PushModel

/// The real time: the certificates that the tests make are valid around it.
enum AttestedClock {
    static let now = WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000)
}

enum NamedPause {
    static func short() { NamedThread.sleep(.milliseconds(20)) }
}
