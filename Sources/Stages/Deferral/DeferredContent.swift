// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Planning
package import PushModel

/// The content of a deferred push, and its tries so far. Its body is one of `DeferredTable.bodies`.
package struct DeferredContent: BitwiseCopyable {
    package var push: PushContent
    package var past: PushRequest.Past
    /// When the token was last sent a push, or until when one may have been.
    package var sentAt = MonotonicTime(nanoseconds: .min)
    /// Whether nothing is owed: the row only keeps `sentAt` until the minimum gap is over.
    package var isSent = false

    package init(_ push: PushContent, past: PushRequest.Past) {
        self.push = push
        self.past = past
    }
}
