// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What an event is about of which a push waits.
package struct WaitingEvent: Sendable, Equatable {
    package var topic: String
    package var app: String
    /// Empty where nobody shows it any more.
    package var subject: [UInt8]

    package init(topic: String, app: String, subject: [UInt8]) {
        self.topic = topic
        self.app = app
        self.subject = subject
    }
}
