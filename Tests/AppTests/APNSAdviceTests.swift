// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Testing

@testable internal import Worker

@Suite struct `The advice on an answer of APNs` {
    private func advice(_ status: UInt16, _ reason: APNSReason) -> String {
        APNSAdvice.text(PushOutcome(slot: 0, kind: .answered, status: status, reason: reason))
    }

    @Test func `a push type that is not known is not blamed on the team`() {
        #expect(advice(400, .invalidPushType).contains("apns-push-type"))
        #expect(!advice(400, .invalidPushType).contains("team"))
        #expect(advice(400, .topicDisallowed).contains("team owns the app"))
        #expect(advice(400, .badTopic).contains("bundle identifier"))
    }

    @Test func `what a worker would do follows the one table`() {
        #expect(advice(410, .unregistered).hasPrefix("the token is dead"))
        #expect(advice(400, .badDeviceToken).contains("in this environment"))
        #expect(advice(400, .channelNotRegistered).contains("channels list"))
        #expect(advice(400, .badChannelId).contains("channels list"))
        #expect(advice(403, .invalidProviderToken).contains("key ID"))
        #expect(advice(429, .tooManyRequests).contains("waits"))
        #expect(advice(503, .serviceUnavailable).contains("at APNs"))
        #expect(advice(400, .badPriority).contains("dead letter"))
        #expect(advice(200, .none) == "accepted")
    }
}
