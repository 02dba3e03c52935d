// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a command that cannot go on tells its caller: one line, and a code from sysexits(3).
package struct Failure: Error {
    package enum Status: Int32, Sendable {
        case unreadableInput = 65
        case unavailable = 69
        case internalError = 70
        case temporary = 75
        case configuration = 78
    }

    package var status: Status
    package var message: String

    package init(_ status: Status, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Sorts any error by what its reader can do about it; one that no program expects is internal.
    package init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as any ReportedError: self = error.failure
        default: self.init(.internalError, "\(error)")
        }
    }
}

/// An error that a command's caller can do something about. Each program says so of the errors that
/// its commands throw.
package protocol ReportedError: Error {
    var failure: Failure { get }
}
