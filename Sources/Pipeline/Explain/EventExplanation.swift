// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

/// A record of an events topic that somebody asks about. It need not be in Kafka.
package struct TrialRecord: Sendable {
    /// The index of the topic's binding.
    package var binding: Int
    package var key: [UInt8]?
    package var value: [UInt8]?
    package var timestamp: WallTime
    package var headers: [(name: String, value: [UInt8])]

    package init(
        binding: Int, key: [UInt8]?, value: [UInt8]?, timestamp: WallTime,
        headers: [(name: String, value: [UInt8])] = []
    ) {
        self.binding = binding
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers
    }
}

/// Whom a record would reach, and why not the others who show its subject.
package struct EventExplanation: Sendable {
    /// Why the record cannot be read.
    package var unreadable: UnreadableRecord?
    /// Whether the topic's binding leaves the record out.
    package var isFiltered = false
    /// Why, in a clause.
    package var filterReason: String?
    /// The event; nil if the record cannot be read or is left out.
    package var event: ReadEvent?
    /// How many entries of the audience have each result.
    package var counts: [Result: Int] = [:]
    /// Some entries of each result.
    package var entries: [Entry] = []
    /// How many entries were not looked at, because there are so many.
    package var unseen = 0
    /// Other apps in which the subject is shown, and by how many entries.
    package var otherApps: [(app: String, entries: Int)] = []
    /// The open circuit breakers that its pushes would wait for.
    package var breakers: [TrippedBreaker] = []
    /// The restrictions in force that it would meet.
    package var restrictions: [ExplainedRestriction] = []

    package struct ReadEvent: Sendable {
        package var app: String
        /// Empty for an event that means every control of its kinds, and for one for an installation.
        package var subject: [UInt8]
        package var installation: String?
        package var environment: PushEnvironment?
        package var kinds: [String]
        package var classes: TokenClassSet
        package var time: WallTime
        package var expiresAt: WallTime
        package var isExpired: Bool
        package var delay: Duration
        package var payload: PushType?
        package var collapseID: String?
    }

    package typealias Result = EntryFate
    package typealias Cause = EntryFate.Cause

    package struct Entry: Sendable {
        package var id: UInt64
        package var environment: PushEnvironment
        package var tokenClass: TokenClass
        package var kind: String
        package var result: Result
    }

    /// The most entries that are named, of those that would get a push and of each other result.
    static let pushesMax = 100
    static let othersMax = 20
    /// The most entries that are looked at.
    static let lookedMax = 1_000_000
}
