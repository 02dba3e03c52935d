// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// One line of a subject's list: what the fan-out needs to know of a subscription.
package struct AudienceEntry: Hashable, Sendable, BitwiseCopyable {
    package var token: TokenID
    package var kind: KindID
    /// Whether a plain event (without payload) sends the token a push.
    package var hearsChanges: Bool

    package init(token: TokenID, kind: KindID, hearsChanges: Bool) {
        self.token = token
        self.kind = kind
        self.hearsChanges = hearsChanges
    }
}

/// What a registration has changed in the index, as far as the fan-out must learn of it.
package struct AudienceChanges: Sendable {
    /// An entry of a subject's list, identified by its content rather than by its position.
    package struct Listed: Hashable, Sendable, BitwiseCopyable {
        package var subject: SubjectID
        package var entry: AudienceEntry
    }

    /// What a registration shows that was not shown before: a new (token, subject, kind), one that
    /// has only now asked for pushes on changes, or one whose token was suppressed until now. A
    /// registration that is repeated unchanged reports nothing.
    package internal(set) var subscribed: [Listed] = []
    /// Tokens that no registration holds any more. Their rows stay readable until
    /// `Audience.reclaimRemoved()`.
    package internal(set) var removedTokens: [TokenID] = []
    /// Tokens for which the registration no longer shows a subject that it did; another one may.
    package internal(set) var narrowed: [TokenID] = []
    /// Entries that have taken the position of a removed one, in lists with a cursor. The cursor
    /// may have passed that position, so the fan-out must visit them now or would miss them.
    package internal(set) var moved: [Listed] = []
    /// The hash by which the snapshot that was applied can be found again; nil after a tombstone.
    package internal(set) var registration: StableHash.Value?

    package init() {}

    package var isEmpty: Bool {
        subscribed.isEmpty && removedTokens.isEmpty && narrowed.isEmpty && moved.isEmpty
    }

    /// Removes all changes and keeps the memory.
    mutating func clear() {
        subscribed.removeAll(keepingCapacity: true)
        removedTokens.removeAll(keepingCapacity: true)
        narrowed.removeAll(keepingCapacity: true)
        moved.removeAll(keepingCapacity: true)
        registration = nil
    }
}

/// How many rows of a registration could not be taken as they were. Callers count them; none is an
/// error.
package struct SetAside: Hashable, Sendable {
    /// No route for the row's (environment, app, class): the row is left out.
    package var unroutable = 0
    /// A token not of 1 to 512 bytes, a subject or kind over 256: the row is left out.
    package var outOfBounds = 0
    /// The app has used up its kinds: the row is taken with `KindID.none`.
    package var withoutKind = 0

    package init() {}
}
