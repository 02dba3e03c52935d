// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What an event is for one entry of the audience: a token that shows the subject under a kind.
/// `FanOut.fate` decides; fan-outs, explanations, samples and tests of bindings go by it.
package enum EntryFate: Sendable, Hashable {
    case push(PushType)
    case passedOver(Cause)

    /// Why the entry gets no push.
    package enum Cause: String, Sendable, CaseIterable {
        /// The event is a shard, for other tokens.
        case otherShard
        case otherEnvironment
        case otherClass
        case otherKind
        /// The event's push is of another type than this class of token is sent.
        case otherPushType
        /// The event starts a Live Activity, and this is the token of one that runs.
        case activityRuns
        /// The event changes a Live Activity, and this is the token that starts one.
        case startsActivities
        /// The registration does not ask for a push on a change, and the event has no payload.
        case changesUnwanted
        /// No push without a payload exists for tokens of this class.
        case noPushForChange
        case suppressed
        /// The app is moving, and another sender serves this token.
        case otherSender
        case expired
        /// An operator drops its events or its pushes.
        case dropped
    }
}
