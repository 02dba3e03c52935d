// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Testing

/// One row of Apple's table of answers, as its page spells it, and what is to be done.
struct DocumentedAnswer: Sendable, CustomTestStringConvertible {
    let status: UInt16
    let word: String
    let push: AnswerTable.PushAction
    let connection: AnswerTable.ConnectionAction

    var testDescription: String { "\(status) \(word)" }

    init(
        _ status: UInt16, _ word: String, _ push: AnswerTable.PushAction,
        _ connection: AnswerTable.ConnectionAction = .keep
    ) {
        self.status = status
        self.word = word
        self.push = push
        self.connection = connection
    }

    static let all = [
        DocumentedAnswer(400, "BadCollapseId", .reject),
        DocumentedAnswer(400, "BadDeviceToken", .rejectToken),
        DocumentedAnswer(400, "BadExpirationDate", .reject),
        DocumentedAnswer(400, "BadMessageId", .reject),
        DocumentedAnswer(400, "BadPriority", .reject),
        DocumentedAnswer(400, "BadTopic", .openRouteBreaker),
        DocumentedAnswer(400, "DeviceTokenNotForTopic", .rejectToken),
        DocumentedAnswer(400, "DuplicateHeaders", .reject),
        DocumentedAnswer(400, "IdleTimeout", .resend, .retire),
        DocumentedAnswer(400, "InvalidPushType", .openRouteBreaker),
        DocumentedAnswer(400, "MissingDeviceToken", .reject),
        DocumentedAnswer(400, "MissingTopic", .reject),
        DocumentedAnswer(400, "PayloadEmpty", .reject),
        DocumentedAnswer(400, "TopicDisallowed", .openRouteBreaker, .retire),
        DocumentedAnswer(403, "BadCertificate", .openPoolBreaker, .retire),
        DocumentedAnswer(403, "BadCertificateEnvironment", .openPoolBreaker, .retire),
        DocumentedAnswer(403, "ExpiredProviderToken", .openPoolBreaker, .retireAndRenew),
        DocumentedAnswer(403, "Forbidden", .reject),
        DocumentedAnswer(403, "InvalidProviderToken", .openPoolBreaker, .retire),
        DocumentedAnswer(403, "MissingProviderToken", .openPoolBreaker, .retire),
        DocumentedAnswer(403, "UnrelatedKeyIdInToken", .openPoolBreaker, .retire),
        DocumentedAnswer(403, "BadEnvironmentKeyIdInToken", .openPoolBreaker, .retire),
        DocumentedAnswer(404, "BadPath", .reject),
        DocumentedAnswer(405, "MethodNotAllowed", .reject),
        DocumentedAnswer(410, "ExpiredToken", .suppression),
        DocumentedAnswer(410, "Unregistered", .suppression),
        DocumentedAnswer(413, "PayloadTooLarge", .reject),
        DocumentedAnswer(429, "TooManyProviderTokenUpdates", .openPoolBreaker),
        DocumentedAnswer(429, "TooManyRequests", .coolDown),
        DocumentedAnswer(500, "InternalServerError", .backOff),
        DocumentedAnswer(503, "ServiceUnavailable", .backOff),
        DocumentedAnswer(503, "Shutdown", .resend, .retire),
        DocumentedAnswer(400, "BadChannelId", .rejectToken),
        DocumentedAnswer(400, "BadRequestParams", .reject),
        DocumentedAnswer(400, "BadRequestPayload", .reject),
        DocumentedAnswer(400, "CannotCreateChannelConfig", .reject),
        DocumentedAnswer(400, "ChannelNotRegistered", .rejectToken),
        DocumentedAnswer(400, "FeatureNotEnabled", .openRouteBreaker),
        DocumentedAnswer(400, "MissingChannelId", .reject),
        DocumentedAnswer(400, "MissingPushType", .reject),
        DocumentedAnswer(403, "TopicMismatch", .openRouteBreaker),
    ]
}

@Suite struct `The table of answers` {
    private static let retrying: Set<AnswerTable.PushAction> = [
        .resend, .coolDown, .backOff, .openPoolBreaker, .openRouteBreaker,
    ]

    @Test(arguments: DocumentedAnswer.all)
    func `the table of answers does what Apple says`(answer: DocumentedAnswer) {
        let reason = APNSReason(answer.word)
        let row = AnswerTable.row(status: answer.status, reason: reason)
        #expect(reason.name == answer.word)
        #expect(row.push == answer.push)
        #expect(row.connection == answer.connection)
    }

    @Test func `the table of answers has one row for each documented reason and no other`() {
        let documented = Set(DocumentedAnswer.all.map { APNSReason($0.word) })
        #expect(documented.count == 41)
        #expect(Set(AnswerTable.rows.map(\.reason)) == documented)
        #expect(AnswerTable.rows.count == 41)
        #expect(documented.union([.none, .unknown]) == Set(APNSReason.allCases))
    }

    @Test(arguments: [
        ("BadEnvironmentKeyInToken", APNSReason.badEnvironmentKeyIdInToken),
        ("BadEnvironmentKeyIdInToken", .badEnvironmentKeyIdInToken),
        ("Service Unavailable", .serviceUnavailable),
        ("ServiceUnavailable", .serviceUnavailable),
        ("", .none), ("None", .unknown), ("Unknown", .unknown), ("badTopic", .unknown),
        ("NotYetKnown", .unknown),
    ])
    func `the table of answers reads Apple's words, two in both spellings`(
        word: String, reason: APNSReason
    ) {
        #expect(APNSReason(word) == reason)
    }

    @Test(
        arguments: [
            (400, AnswerTable.PushAction.reject), (403, .openPoolBreaker), (404, .reject),
            (410, .suppression), (413, .reject), (418, .reject), (429, .coolDown), (301, .reject),
            (500, .backOff), (502, .backOff), (503, .backOff), (504, .backOff), (599, .backOff),
        ] as [(UInt16, AnswerTable.PushAction)])
    func `the table of answers goes by the status where the reason says nothing`(
        status: UInt16, action: AnswerTable.PushAction
    ) {
        for reason in [APNSReason.none, .unknown] {
            let row = AnswerTable.row(status: status, reason: reason)
            #expect(row.push == action)
            #expect(row.connection == .keep)
        }
    }

    @Test func `a 200 is an acceptance, whatever its body says`() {
        for reason in APNSReason.allCases {
            #expect(AnswerTable.row(status: 200, reason: reason).push == .accept)
        }
    }

    /// "Don't retry": Apple's own list.
    @Test(arguments: [
        "BadDeviceToken", "DeviceTokenNotForTopic", "Forbidden", "ExpiredToken", "Unregistered",
        "PayloadTooLarge",
    ])
    func `the table of answers never tries again what Apple forbids`(word: String) {
        let documented = DocumentedAnswer.all.filter { $0.word == word }
        #expect(documented.count == 1)
        for answer in documented {
            let row = AnswerTable.row(status: answer.status, reason: APNSReason(word))
            #expect(!Self.retrying.contains(row.push))
        }
    }

    @Test func `a fault at Apple's never costs a token or a push`() {
        for status in 500...599 as ClosedRange<UInt16> {
            for reason in [APNSReason.none, .unknown, .internalServerError, .shutdown] {
                let row = AnswerTable.row(status: status, reason: reason)
                #expect(Self.retrying.contains(row.push), "\(status) \(reason)")
            }
        }
    }
}
