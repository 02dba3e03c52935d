// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// An event as a person or a program wants to emit it. What is nil or empty is left out.
package struct EventDraft: Sendable {
    package var id: String?
    package var subject: String?
    package var time: WallTime?
    package var app: String?
    package var environment: PushEnvironment?
    package var kinds: [String] = []
    package var classes: [TokenClass] = []
    package var ttlSeconds: Int64?
    package var expiresAt: WallTime?
    package var priority: UInt8?
    package var collapseID: String?
    /// `none` or `deadline`.
    package var expiration: ExpirationRule?
    /// JSON as it is. Decode the encoded event before sending it: that checks this and all bounds.
    package var payload: [UInt8]?
    /// Only workers write it.
    package var shard: EventShard?

    package init() {}

    /// All that an event says but for its subject and delay: the one need not be text, the other is
    /// its binding's.
    package init(_ event: Event, app: String) {
        time = event.time
        self.app = app
        environment = event.environment
        kinds = event.kinds
        classes = event.classes == .all ? [] : TokenClass.allCases.filter(event.classes.contains)
        expiresAt = event.expiresAt
        priority = event.priority
        collapseID = event.collapseID
        expiration = event.expiration
        payload = event.payload?.body
        shard = event.shard
    }
}
