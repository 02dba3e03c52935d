// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Text that may be used and never shown: whatever prints, dumps or reflects on it, or on what
/// holds it, sees a placeholder. A secret stays in here from where it is read to where a library
/// needs it.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    package let text: String

    package init(_ text: String) { self.text = text }

    package static let placeholder = "(set, not shown)"

    package var description: String { Self.placeholder }
    package var debugDescription: String { Self.placeholder }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
