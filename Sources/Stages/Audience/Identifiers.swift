// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// One line of a subject's list: what the fan-out needs to know of a subscription.
package struct AudienceEntry: Hashable, Sendable, BitwiseCopyable {
    package var token: TokenID
    package var kind: KindID
    /// Whether a plain event (without payload) concerns it.
    package var hearsChanges: Bool

    package init(token: TokenID, kind: KindID, hearsChanges: Bool) {
        self.token = token
        self.kind = kind
        self.hearsChanges = hearsChanges
    }
}

/// What the fan-out has to be told after the index has changed.
package struct AudienceChanges: Sendable {
    /// An entry of a subject's list, by name.
    package struct Listed: Hashable, Sendable, BitwiseCopyable {
        package var subject: SubjectID
        package var entry: AudienceEntry
    }

    /// What a registration shows that it did not show before: a new (token, subject, kind), one that
    /// now hears changes, or one whose token was suppressed by a suppression until now. A registration repeated word for word reports nothing.
    package internal(set) var subscribed: [Listed] = []
    /// Tokens that no registration holds any more. Their rows stay readable until
    /// `Audience.reclaimRemoved()`.
    package internal(set) var removedTokens: [TokenID] = []
    /// Entries that moved into the place of a removed one, in lists with a cursor: the cursor may
    /// have passed that place, so it must visit them now or skip them.
    package internal(set) var moved: [Listed] = []

    package var isEmpty: Bool { subscribed.isEmpty && removedTokens.isEmpty && moved.isEmpty }

    /// Keeps the memory.
    package mutating func clear() {
        subscribed.removeAll(keepingCapacity: true)
        removedTokens.removeAll(keepingCapacity: true)
        moved.removeAll(keepingCapacity: true)
    }
}

/// Rows of a registration that could not be taken as they were. To be counted, never fatal.
package struct SetAside: Hashable, Sendable {
    /// No route for the row's (environment, app, class): the row is left out.
    package var unroutable = 0
    /// A token not of 1 to 512 bytes, a subject or kind over 256: the row is left out.
    package var outOfBounds = 0
    /// The app has used up its kinds: the row is taken with `KindID.none`.
    package var withoutKind = 0

    package init() {}
}
