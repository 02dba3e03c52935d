// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How much the index holds, and what it costs.
package struct AudienceStatistics: Hashable, Sendable {
    /// The number of tokens that a registration holds.
    package var tokens: Int
    /// The same by route.
    package var tokensOfRoutes: [Int]
    package var subjects: Int
    /// Entries of subjects' lists; those of whole kinds and of installations are not counted.
    package var subscriptions: Int
    package var registrations: Int
    package var kinds: Int
    package var suppressions: Int

    /// Memory of each structure in bytes, at its peak so far and with its freed blocks.
    package var tokenBytes: Int
    package var subjectBytes: Int
    package var listBytes: Int
    package var registrationBytes: Int
    package var indexBytes: Int
    package var suppressionBytes: Int
    package var kindBytes: Int
    /// How many of these bytes are in freed blocks that wait to be reused.
    package var freeBytes: Int

    package var totalBytes: Int {
        tokenBytes + subjectBytes + listBytes + registrationBytes + indexBytes + suppressionBytes
            + kindBytes
    }
}

extension Audience {
    package var statistics: AudienceStatistics {
        AudienceStatistics(
            tokens: tokens.count, tokensOfRoutes: tokens.counts, subjects: subjects.subjects,
            subscriptions: subjects.subscriptions, registrations: registrations.count,
            kinds: kinds.count, suppressions: tokens.suppressionCount,
            tokenBytes: tokens.recordBytes, subjectBytes: subjects.recordBytes,
            listBytes: subjects.listBytes, registrationBytes: registrations.blockBytes,
            indexBytes: tokens.indexBytes + subjects.indexBytes + registrations.indexBytes,
            suppressionBytes: tokens.suppressionBytes, kindBytes: kinds.memoryBytes,
            freeBytes: tokens.freeBytes + subjects.freeBytes + registrations.freeBytes
                + kinds.freeBytes)
    }

    /// Traps unless all structures agree: each row is in its subject's list at the position that it
    /// names, each entry of a list is such a row, and each token counts its rows. It visits
    /// everything, so it is for tests.
    package func checkInvariants() {
        var references: [UInt32: Int] = [:]
        var kindReferences: [AppID: [KindID: Int]] = [:]
        var listed = 0
        registrations.forEach { row in
            let subscription = registrations[row]
            references[subscription.token.rawValue, default: 0] += 1
            if subscription.kind != .none {
                kindReferences[app(of: subscription), default: [:]][
                    subscription.kind, default: 0] += 1
            }
            let subject = subscription.subject
            guard subject != Subscription.noSubject else { return }
            listed += 1
            let named = subjects.subscription(subject, at: Int(subscription.position))
            precondition(
                named == row, "a row is listed by its subject at the position that it names")
        }
        var entries = 0
        subjects.forEach { subject in entries += subjects.count(subject) }
        precondition(
            entries == listed,
            "each entry of a list is a row that has a subject: \(entries) of \(listed)")
        registrations.checkInvariants()
        subjects.checkInvariants()
        tokens.checkInvariants(references: references)
        kinds.checkInvariants(references: kindReferences)
    }
}
