// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// A system call that failed: which one, and the system's own words for why.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    package let call: String
    /// The `errno` of the failure.
    package let code: CInt

    package init(call: String, code: CInt) {
        self.call = call
        self.code = code
    }

    /// The failure of the call that has just returned on this thread.
    static func last(_ call: String) -> SystemError { SystemError(call: call, code: errno) }

    package var description: String { "\(call): \(Self.text(code))" }

    /// Whether nobody listens at the address.
    package var isRefusal: Bool { code == ECONNREFUSED }

    /// Whether somebody else listens at the address.
    package var isAddressTaken: Bool { code == EADDRINUSE }

    /// Whether another process holds the lock.
    package var isLockHeld: Bool { call == "flock" && code == EWOULDBLOCK }

    private static func text(_ code: CInt) -> String {
        // `strerror` shares its buffer between threads; the `_r` form writes to ours.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
            guard strerror_r(code, buffer.baseAddress!, buffer.count) == 0 else {
                return "errno \(code)"
            }
            return String(cString: buffer.baseAddress!)
        }
    }
}
