// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Why a token was suppressed, and when.
package struct RecordedSuppression: Sendable, Equatable {
    /// The status and reason of APNs's answer. The reason is empty where it is not known.
    package var status: UInt16
    package var reason: String
    /// When the registration was registered that the answer was given to.
    package var registeredAt: WallTime
    /// When the suppression was recorded, to the second; nil where Kafka kept no time.
    package var recordedAt: WallTime?

    package init(
        status: UInt16, reason: String, registeredAt: WallTime, recordedAt: WallTime?
    ) {
        self.status = status
        self.reason = reason
        self.registeredAt = registeredAt
        self.recordedAt = recordedAt
    }
}

/// One row of a registration.
package struct RegistrationRow: Sendable, Equatable {
    package var token: TokenID
    /// Nil for a target that shows no subject.
    package var subject: SubjectID?
    package var kind: KindID
    package var hearsChanges: Bool

    init(_ row: Subscription) {
        token = row.token
        subject = row.subject == Subscription.noSubject ? nil : row.subject
        kind = row.kind
        hearsChanges = row.hearsChanges
    }
}

/// What people ask of the index. It is large, so whoever looks for something without its key does
/// so in parts: `visit…` looks at some rows and returns where to go on.
extension Audience {
    /// Visits at most `most` rows of the registration with this key, from the row at `first` on.
    /// - Returns: how many rows it has; 0 if no such registration is in force.
    package func visitRows(
        ofRegistration key: UnsafeRawBufferPointer, from first: Int, most: Int,
        _ body: (RegistrationRow) -> Void
    ) -> Int {
        let identity = RegistrationTable.Identity(key: key, seed: keySeed)
        guard let block = registrations.find(identity) else { return 0 }
        return registrations.visitRows(of: block, from: first, most: most) {
            body(RegistrationRow($0))
        }
    }

    /// Visits tokens that a registration holds or a suppression names.
    /// - Parameters:
    ///   - cursor: 0 to begin with, then the last result.
    ///   - most: about how many tokens to look at.
    /// - Returns: where to go on; nil at the end.
    package func visitTokens(
        from cursor: UInt32, most: Int, _ body: (TokenID) -> Void
    ) -> UInt32? {
        tokens.visit(from: cursor, most: most, body)
    }

    /// Visits the rows of registrations, as `visitTokens` does tokens.
    /// - Parameter most: about how many registrations to look at.
    package func visitRows(
        from cursor: UInt32, most: Int, _ body: (RegistrationRow) -> Void
    ) -> UInt32? {
        registrations.visit(from: cursor, most: most) { body(RegistrationRow($0)) }
    }

    /// How many rows of registrations name the token.
    package func rowCount(of token: TokenID) -> Int { tokens.references(of: token) }

    /// The token's suppression, also one that a later registration has outlived.
    package func suppression(of token: TokenID) -> RecordedSuppression? {
        tokens.suppression(of: token)
    }
}
