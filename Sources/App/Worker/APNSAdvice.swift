// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import PushModel

/// What an operator can do about an answer of APNs, as text that completes "APNs answers …: ".
package enum APNSAdvice {
    /// What an answer other than 200 means, and what a worker does with such a push.
    package static func text(_ outcome: PushOutcome) -> String {
        switch AnswerTable.row(status: outcome.status, reason: outcome.reason).push {
        case .accept: "accepted"
        case .reject: "APNs does not take this push; a worker writes a dead letter"
        case .rejectToken where [.badChannelId, .channelNotRegistered].contains(outcome.reason):
            "this app has no such channel in this environment; see lamplighter channels list"
        case .rejectToken:
            "the token is not one of this app in this environment; check both, and the token"
        case .suppression: "the token is dead; a worker sends nothing more to it"
        case .resend: "the push is not at fault; a worker sends it again at once"
        case .coolDown: "too many pushes to this token; a worker waits and sends it again"
        case .backOff: "a fault at APNs; a worker waits and sends it again"
        case .openPoolBreaker: credential(outcome.reason)
        case .openRouteBreaker: topic(outcome.reason)
        }
    }

    /// The advice on an answer for which all pushes of an apns-topic wait.
    ///
    /// - Parameter app: the topic's; nil where whoever asks knows it.
    static func topic(_ reason: APNSReason, of app: String? = nil) -> String {
        let name = app.map { " \($0.printable)" } ?? ""
        return switch reason {
        case .invalidPushType:
            "this server does not know the apns-push-type; if apns.endpoints names Apple's own, "
                + "Apple no longer takes pushes of this type"
        case .featureNotEnabled:
            "switch on the broadcast capability of push notifications for the app's identifier\(name) in "
                + "the developer account"
        case .badTopic: "the apns-topic is invalid; check the app's bundle identifier\(name)"
        default: "check that the credential's team owns the app\(name)"
        }
    }

    /// The advice on an answer for which all pushes of a credential wait.
    package static func credential(_ reason: APNSReason) -> String {
        switch reason {
        case .tooManyProviderTokenUpdates:
            "this team's provider tokens change more often than every 20 minutes; give each sender a "
                + "topic-specific key of its own, and look for workers that restart in a loop, and for "
                + "other programs that sign for the team"
        case .expiredProviderToken:
            "it calls a provider token expired that is less than an hour old by its iat; "
                + "check this machine's clock (NTP)"
        case .unrelatedKeyIdInToken:
            "the key is not for these topics or this environment; give each topic-specific key "
                + "a credential of its own, with just its apps and its environment"
        case .badEnvironmentKeyIdInToken:
            "the key is for the other environment; name only its own in the credential's environments"
        case .none:
            "APNs gives a reason, so look for what answers in its place (apns.endpoints, a proxy); if nothing does, "
                + "check the credential's key, key ID, team and environments"
        default: "check the credential's key, key ID, team and environments"
        }
    }
}
