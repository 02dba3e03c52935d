// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What APNs answers and what is done about it: Apple's "Handling notification responses from APNs"
/// as one table. Where Apple says nothing, the choice is ours.
package enum AnswerTable {
    package struct Row: Sendable {
        package let status: UInt16
        package let reason: APNSReason
        package let push: PushAction
        package let connection: ConnectionAction
    }

    /// What becomes of the push.
    package enum PushAction: Sendable {
        /// Accepted for delivery: done.
        case accept
        /// Never sent again; ends in a dead letter.
        case reject
        /// Never sent again, and the token is bad if the guard on 400s agrees.
        case rejectToken
        /// The token is dead: a suppression, subject to its timestamp.
        case suppression
        /// The push is fine; send it again at once, elsewhere.
        case resend
        /// This token is sent too much: wait, for this token only.
        case coolDown
        /// A fault at Apple's: wait, for this push, 1 s to 15 min.
        case backOff
        /// The credential is at fault: its breaker opens, the push waits.
        case openPoolBreaker
        /// The topic is at fault: its breaker opens, the push waits.
        case openRouteBreaker
    }

    /// What becomes of the connection that the answer came on.
    package enum ConnectionAction: Sendable {
        case keep
        /// Send nothing more on it; finish what is in flight; open another.
        case retire
        /// Like `retire`, but the provider token is renewed first if it is old enough. If there is
        /// a newer token, the push is sent again at once; otherwise the answer counts.
        case retireAndRenew
    }

    /// The shortest time for which a credential is not used once it has been refused for this
    /// reason. Apple measures these limits in tens of minutes, and each try counts against us.
    package static func credentialWaitMin(_ reason: APNSReason) -> Duration {
        switch reason {
        case .tooManyProviderTokenUpdates, .expiredProviderToken, .unrelatedKeyIdInToken:
            .seconds(20)
        default: .zero
        }
    }

    package static func row(status: UInt16, reason: APNSReason) -> Row {
        if status == 200 {
            return Row(status: 200, reason: .none, push: .accept, connection: .keep)
        }
        if let row = rows.first(where: { $0.reason == reason && $0.status == status }) {
            return row
        }
        // An unknown reason, or a known one under another status: the status alone decides.
        return Row(status: status, reason: reason, push: byStatus(status), connection: .keep)
    }

    private static func byStatus(_ status: UInt16) -> PushAction {
        switch status {
        case 200..<300: .accept
        case 410: .suppression
        case 429: .coolDown
        // A 403 without a known reason blames the credential like its named siblings: sending on
        // would be an error against us for each push.
        case 403: .openPoolBreaker
        case 300..<500: .reject
        default: .backOff
        }
    }

    /// The reasons after which Apple's page forbids sending this push, or to this token, again. A
    /// redrive leaves such pushes out too.
    package static let forbiddenToRetry: Set<APNSReason> = [
        .badDeviceToken, .deviceTokenNotForTopic, .forbidden, .expiredToken, .unregistered,
        .payloadTooLarge, .badChannelId, .channelNotRegistered,
    ]

    package static let rows: [Row] = ofPushes + ofBroadcasts

    private static let ofPushes: [Row] = [
        row(400, .badCollapseId, .reject),
        row(400, .badDeviceToken, .rejectToken),
        row(400, .badExpirationDate, .reject),
        row(400, .badMessageId, .reject),
        row(400, .badPriority, .reject),
        row(400, .badTopic, .openRouteBreaker),
        row(400, .deviceTokenNotForTopic, .rejectToken),
        row(400, .duplicateHeaders, .reject),
        row(400, .idleTimeout, .resend, .retire),
        row(400, .invalidPushType, .openRouteBreaker),
        row(400, .missingDeviceToken, .reject),
        row(400, .missingTopic, .reject),
        row(400, .payloadEmpty, .reject),
        // A topic added to the team later fails on connections opened before: hence a new one.
        row(400, .topicDisallowed, .openRouteBreaker, .retire),
        row(403, .badCertificate, .openPoolBreaker, .retire),
        row(403, .badCertificateEnvironment, .openPoolBreaker, .retire),
        // APNs goes on refusing on a connection that has seen an expired token.
        row(403, .expiredProviderToken, .openPoolBreaker, .retireAndRenew),
        row(403, .forbidden, .reject),
        row(403, .invalidProviderToken, .openPoolBreaker, .retire),
        row(403, .missingProviderToken, .openPoolBreaker, .retire),
        // Apple: open a new connection. No connection of ours ever sees two keys, so where a new
        // one is refused too, it is the key that does not fit.
        row(403, .unrelatedKeyIdInToken, .openPoolBreaker, .retire),
        row(403, .badEnvironmentKeyIdInToken, .openPoolBreaker, .retire),
        row(404, .badPath, .reject),
        row(405, .methodNotAllowed, .reject),
        row(410, .expiredToken, .suppression),
        row(410, .unregistered, .suppression),
        row(413, .payloadTooLarge, .reject),
        // The provider token changed too often: only time cures it. A new connection, or another
        // token, would be one more of what APNs complains of.
        row(429, .tooManyProviderTokenUpdates, .openPoolBreaker),
        row(429, .tooManyRequests, .coolDown),
        row(500, .internalServerError, .backOff),
        row(503, .serviceUnavailable, .backOff),
        row(503, .shutdown, .resend, .retire),
    ]

    /// Apple's "Handling error responses from Apple Push Notification service", those that only
    /// broadcasts to channels have.
    private static let ofBroadcasts: [Row] = [
        // The channel was deleted, or all are of another environment or app, which the guard on 400s
        // tells apart by the route's other answers.
        row(400, .badChannelId, .rejectToken),
        row(400, .channelNotRegistered, .rejectToken),
        row(400, .badRequestParams, .reject),
        row(400, .badRequestPayload, .reject),
        row(400, .cannotCreateChannelConfig, .reject),
        // The app has no broadcasts until its capability is switched on.
        row(400, .featureNotEnabled, .openRouteBreaker),
        row(400, .missingChannelId, .reject),
        row(400, .missingPushType, .reject),
        // The key signs for other apps: another one does not.
        row(403, .topicMismatch, .openRouteBreaker),
    ]

    private static func row(
        _ status: UInt16, _ reason: APNSReason, _ push: PushAction,
        _ connection: ConnectionAction = .keep
    ) -> Row {
        Row(status: status, reason: reason, push: push, connection: connection)
    }
}
