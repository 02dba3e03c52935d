// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a list of tokens is the list of, and so what its name is. Two scopes never share a list, even
/// for the same bytes.
package enum ListScope: UInt8, Sendable {
    /// Whoever shows the subject.
    case subject
    /// All controls and widgets of a kind.
    case kindWide
    /// The tokens of one installation, channels left out: whoever subscribes to those is not told.
    case installation
}
