// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// An event as a person or a program wants to emit it. What is nil or empty is left out.
package struct EventDraft: Sendable {
    package var id: String?
    package var subject: String?
    /// Instead of a subject: the tokens of one installation.
    package var installation: String?
    package var time: WallTime?
    package var app: String?
    package var environment: PushEnvironment?
    package var kinds: [String] = []
    /// Every control and widget of the app.
    package var all = false
    package var classes: [TokenClass] = []
    package var ttlSeconds: Int64?
    package var expiresAt: WallTime?
    package var priority: UInt8?
    package var collapseID: String?
    /// How `apns-expiration` is filled in: `none` or `deadline`.
    package var expiration: ExpirationRule?
    package var pushType: PushType?
    /// The payload's JSON, which is written unchanged. Decoding the encoded event checks it and all
    /// bounds: do so before sending.
    package var payload: [UInt8]?
    /// The part of a large audience that the event is for; only workers write it.
    package var shard: EventShard?

    package init() {}

    /// Makes a draft of a decoded event without its subject, which need not be text, and without
    /// its delay, which its binding sets.
    package init(_ event: Event, app: String) {
        installation = event.installation
        time = event.time
        self.app = app
        environment = event.environment
        kinds = event.kinds
        classes = event.classes == .all ? [] : TokenClass.allCases.filter(event.classes.contains)
        expiresAt = event.expiresAt
        priority = event.priority
        collapseID = event.collapseID
        expiration = event.expiration
        pushType = event.payload?.type
        payload = event.payload?.body
        shard = event.shard
    }
}
