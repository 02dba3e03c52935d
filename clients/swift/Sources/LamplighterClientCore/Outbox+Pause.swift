// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

extension Outbox {
    /// Nothing is sent before this moment, in any process: the registrar's `Retry-After`.
    public func notBefore() throws -> Date? {
        try locked {
            let milliseconds = try readState().notBefore
            // A clock that was wrong must not silence the client for years.
            guard milliseconds > 0, milliseconds < millisecondsNow + 3_600_000 else { return nil }
            return Date(timeIntervalSince1970: Double(milliseconds) / 1000)
        }
    }

    public func wait(until date: Date) throws {
        try locked {
            var state = try readState()
            state.notBefore = Int64(date.timeIntervalSince1970 * 1000)
            try write(state)
        }
    }
}
