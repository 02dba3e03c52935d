// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Which of a subject's tokens an event is for.
package struct AudienceFilter: Hashable, Sendable {
    /// Nil means every environment.
    package var environment: PushEnvironment?
    package var classes: TokenClassSet
    /// The audience's numbers of the kinds, `.unknown` for a kind without one; empty means any.
    package var kinds: [KindID]
    /// The names of the kinds that had no number when the event was read: a kind gets one with its
    /// first registration, which may come while the event is under way.
    package var unknownKinds: [String] = []
    /// The part of all tokens that the event is for; nil means every token.
    package var shard: TokenShard?

    package init(
        environment: PushEnvironment?, classes: TokenClassSet = .all, kinds: [KindID] = [],
        shard: TokenShard? = nil
    ) {
        self.environment = environment
        self.classes = classes
        self.kinds = kinds
        self.shard = shard
    }

    /// Whether `unknownKinds` has this name. Allocates nothing.
    package func isUnknownKind(_ name: UnsafeRawBufferPointer) -> Bool {
        unknownKinds.contains { unknown in
            unknown.utf8.count == name.count && unknown.utf8.elementsEqual(name)
        }
    }
}
