// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A registration as the registrar and the command line write it.
package struct RegistrationDraft: Sendable {
    package struct Show: Sendable {
        package var kind: String?
        package var subjects: [String]

        package init(kind: String?, subjects: [String]) {
            self.kind = kind
            self.subjects = subjects
        }
    }

    package struct Target: Sendable {
        package var tokenClass: TokenClass
        /// The device token as bytes, not hexadecimal; nil for a control that has none yet.
        package var token: [UInt8]?
        /// Whether a plain event sends a device a background push.
        package var hearsChanges = false
        package var shows: [Show]

        package init(tokenClass: TokenClass, token: [UInt8]?, shows: [Show]) {
            self.tokenClass = tokenClass
            self.token = token
            self.shows = shows
        }
    }

    package var environment: PushEnvironment
    package var app: String
    package var installation: String
    package var handler: String
    package var sequence: Int64?
    package var registeredAt: WallTime?
    package var targets: [Target] = []
    /// The key that the installation is for, in base64.
    package var attestedKey: String?

    package init(
        environment: PushEnvironment, app: String, installation: String, handler: String
    ) {
        self.environment = environment
        self.app = app
        self.installation = installation
        self.handler = handler
    }
}
