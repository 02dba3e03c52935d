// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Planning

/// The content of a deferred push, and its tries so far. Its body is one of `DeferredTable.bodies`.
package struct DeferredContent: BitwiseCopyable {
    package var push: PushContent
    package var past: PushRequest.Past

    package init(_ push: PushContent, past: PushRequest.Past) {
        self.push = push
        self.past = past
    }
}
