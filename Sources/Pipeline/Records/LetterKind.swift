// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What dead letters are counted by.
package struct LetterKind: Hashable, Sendable {
    package var reason: String
    /// The events' topic; empty where more are told apart than `countMax`.
    package var topic: String

    static let countMax = 1000

    package init(reason: String, topic: String) {
        self.reason = reason
        self.topic = topic
    }
}
