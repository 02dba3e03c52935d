// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Why a command cannot go on: one line for its caller, and an exit code from sysexits(3).
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

    /// Maps any error to a message and an exit code. An error that no program expects is internal.
    package init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as any ReportedError: self = error.failure
        default: self.init(.internalError, "\(error)")
        }
    }
}

/// An error that a command's caller can act on. Each program declares this of the errors that its
/// commands throw.
package protocol ReportedError: Error {
    var failure: Failure { get }
}
