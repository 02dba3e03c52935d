// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// An answer to a request.
package struct SimulatedAnswer: Hashable, Sendable {
    package enum Form: Hashable, Sendable {
        /// Apple's `{"reason":"…"}`; an empty body with 200.
        case apple
        /// What was asked for of channels, in Apple's JSON.
        case content(String)
        /// An error without a body.
        case empty
        /// An HTML page, such as a proxy would send.
        case html
    }

    package var status: UInt16
    package var reason: String
    /// The member `timestamp`, in milliseconds since 1970. APNs sends it only with 410.
    package var timestamp: Int64?
    package var form: Form
    /// The value of the header `retry-after`; nil to leave it out, as Apple does.
    package var retryAfterSeconds: UInt32?
    /// The value of the header `apns-channel-id`: of a channel that was made.
    package var channelID: String?

    package init(
        _ status: UInt16, _ reason: String, timestamp: Int64? = nil, form: Form = .apple,
        retryAfterSeconds: UInt32? = nil
    ) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
        self.form = form
        self.retryAfterSeconds = retryAfterSeconds
    }

    package static let accepted = SimulatedAnswer(200, "")

    static let badChannelID = SimulatedAnswer(400, "BadChannelId")
    static let badRequestParams = SimulatedAnswer(400, "BadRequestParams")
    static let badRequestPayload = SimulatedAnswer(400, "BadRequestPayload")
    static let cannotCreateChannel = SimulatedAnswer(400, "CannotCreateChannelConfig")
    static let channelNotRegistered = SimulatedAnswer(400, "ChannelNotRegistered")
    static let missingChannelID = SimulatedAnswer(400, "MissingChannelId")
    static let missingPushType = SimulatedAnswer(400, "MissingPushType")
    static let topicMismatch = SimulatedAnswer(403, "TopicMismatch")
    static let badCollapseID = SimulatedAnswer(400, "BadCollapseId")
    static let badDeviceToken = SimulatedAnswer(400, "BadDeviceToken")
    static let badExpirationDate = SimulatedAnswer(400, "BadExpirationDate")
    static let badMessageID = SimulatedAnswer(400, "BadMessageId")
    static let badPriority = SimulatedAnswer(400, "BadPriority")
    static let badTopic = SimulatedAnswer(400, "BadTopic")
    static let deviceTokenNotForTopic = SimulatedAnswer(400, "DeviceTokenNotForTopic")
    static let duplicateHeaders = SimulatedAnswer(400, "DuplicateHeaders")
    static let idleTimeout = SimulatedAnswer(400, "IdleTimeout")
    static let invalidPushType = SimulatedAnswer(400, "InvalidPushType")
    static let missingDeviceToken = SimulatedAnswer(400, "MissingDeviceToken")
    static let missingTopic = SimulatedAnswer(400, "MissingTopic")
    static let payloadEmpty = SimulatedAnswer(400, "PayloadEmpty")
    static let topicDisallowed = SimulatedAnswer(400, "TopicDisallowed")
    static let badEnvironmentKeyID = SimulatedAnswer(403, "BadEnvironmentKeyIdInToken")
    static let expiredProviderToken = SimulatedAnswer(403, "ExpiredProviderToken")
    static let invalidProviderToken = SimulatedAnswer(403, "InvalidProviderToken")
    static let missingProviderToken = SimulatedAnswer(403, "MissingProviderToken")
    static let unrelatedKeyID = SimulatedAnswer(403, "UnrelatedKeyIdInToken")
    static let badPath = SimulatedAnswer(404, "BadPath")
    static let methodNotAllowed = SimulatedAnswer(405, "MethodNotAllowed")
    static let payloadTooLarge = SimulatedAnswer(413, "PayloadTooLarge")
    static let tooManyProviderTokenUpdates = SimulatedAnswer(429, "TooManyProviderTokenUpdates")
    static let tooManyRequests = SimulatedAnswer(429, "TooManyRequests")

    /// The bytes of the body.
    var body: [UInt8] {
        switch form {
        case .empty: []
        case .html: Array("<html><body><h1>\(status)</h1></body></html>\n".utf8)
        case .content(let text): Array(text.utf8)
        case .apple where status < 300: []
        case .apple:
            Array(
                (timestamp.map { #"{"reason":"\#(reason)","timestamp":\#($0)}"# }
                    ?? #"{"reason":"\#(reason)"}"#).utf8)
        }
    }
}
