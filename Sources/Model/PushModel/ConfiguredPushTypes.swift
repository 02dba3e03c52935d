// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Push types that the configuration adds to those of this release, so that Apple's next one needs
/// no new version.
package enum ConfiguredPushTypes {
    /// One push type and the class of token that it is sent to, which no other type has.
    package struct Definition: Sendable, Equatable {
        /// The value of `apns-push-type`.
        package var name: String
        /// The word for its tokens in registrations and events.
        package var tokenClass: String
        /// Appended to the bundle identifier to make `apns-topic`.
        package var topicSuffix: String
        /// Default `apns-priority`: 10, 5 or 1.
        package var priority: UInt8 = 10
        package var expiration = ExpirationRule.immediate
        /// The largest body APNs accepts, in bytes.
        package var bodyBytesMax = 4096
        /// The body of the push that a change sends; nil where a push needs a payload.
        package var changeBody: String?

        package init(name: String, tokenClass: String, topicSuffix: String) {
            self.name = name
            self.tokenClass = tokenClass
            self.topicSuffix = topicSuffix
        }
    }

    /// The most that there is room for in `TokenClassSet`.
    package static let countMax = 6

    // Written once, before the first thread is started that reads it: `define` makes sure.
    nonisolated(unsafe) private static var definitions: [Definition] = []
    nonisolated(unsafe) private static var areRead = false

    /// Adds push types for the rest of the process's life. The tables of push types and token
    /// classes are constants, so this must come before the first use of either, and only once.
    package static func define(_ new: [Definition]) {
        if new == definitions { return }
        precondition(!areRead, "push types are defined before the first use of their table")
        precondition(new.count <= countMax, "the table has room for each push type that is defined")
        definitions = new
    }

    static var all: [Definition] {
        areRead = true
        return definitions
    }
}
