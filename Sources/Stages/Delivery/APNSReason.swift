// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The `reason` words of APNs answers to pushes and broadcasts, and of GOAWAY.
package enum APNSReason: UInt8, CaseIterable, Sendable, BitwiseCopyable {
    /// No reason was given: an empty body, or one that is not APNs's JSON.
    case none
    /// A reason that is not in this list; its text is kept beside the push.
    case unknown

    case badCollapseId, badDeviceToken, badExpirationDate, badMessageId, badPriority, badTopic
    case deviceTokenNotForTopic, duplicateHeaders, idleTimeout, invalidPushType
    case missingDeviceToken, missingTopic, payloadEmpty, topicDisallowed
    case badCertificate, badCertificateEnvironment, expiredProviderToken, forbidden
    case invalidProviderToken, missingProviderToken, unrelatedKeyIdInToken
    case badEnvironmentKeyIdInToken
    case badPath, methodNotAllowed, expiredToken, unregistered, payloadTooLarge
    case tooManyProviderTokenUpdates, tooManyRequests
    case internalServerError, serviceUnavailable, shutdown
    // Of broadcasts alone.
    case badChannelId, badRequestParams, badRequestPayload, cannotCreateChannelConfig
    case channelNotRegistered, featureNotEnabled, missingChannelId, missingPushType, topicMismatch

    /// The reason as Apple spells it.
    package var name: String {
        let name = String(describing: self)
        return name.prefix(1).uppercased() + name.dropFirst()
    }

    /// Reads a reason as Apple spells it; two reasons occur in two spellings. An unlisted one gives
    /// `unknown`.
    package init(_ text: String) {
        switch text {
        case "BadEnvironmentKeyInToken": self = .badEnvironmentKeyIdInToken
        case "Service Unavailable": self = .serviceUnavailable
        case "": self = .none
        default: self = Self.byName[text] ?? .unknown
        }
    }

    private static let byName: [String: APNSReason] = Dictionary(
        uniqueKeysWithValues: allCases.dropFirst(2).map { ($0.name, $0) })
}
