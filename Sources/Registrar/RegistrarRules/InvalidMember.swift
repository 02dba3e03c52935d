// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A member of a request's body that cannot be accepted. Its text never quotes a token.
package struct InvalidMember: Error, Hashable, Sendable {
    /// A JSON pointer (RFC 6901); empty for the whole body.
    package var pointer: String
    package var detail: String
    package var remedy: String

    package init(_ pointer: String, _ detail: String, remedy: String) {
        self.pointer = pointer
        self.detail = detail
        self.remedy = remedy
    }
}
