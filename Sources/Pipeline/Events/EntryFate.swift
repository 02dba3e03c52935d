// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
package import PushModel

/// What an event is for one entry of the audience: a token that shows the subject under a kind.
/// `FanOut.fate` decides it by the event and the entry, and `PipelineState.noPush` by what is known of the token;
/// fan-outs, explanations, samples and tests of bindings go by both. That an event has expired is decided for all
/// of its entries as it is read, and what an operator drops where it is dropped: explanations add these two.
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

extension PipelineState {
    /// Why a token is sent nothing though the event is for it; nil where it is sent a push.
    ///
    /// - Parameter written: when the event was written, at the earliest and at the latest; asked only while an app
    ///   moves from another sender.
    // For each token that an event is for.
    @inline(__always)
    func noPush(
        to token: TokenID, _ route: RouteID,
        writtenIn written: @autoclosure () -> ClosedRange<WallTime>
    ) -> EntryFate.Cause? {
        if audience.isSuppressed(token) { return .suppressed }
        guard rollouts.isAny else { return nil }
        return leavesToOther(token, route, writtenIn: written()) ? .otherSender : nil
    }

    @inline(never)
    private func leavesToOther(
        _ token: TokenID, _ route: RouteID, writtenIn written: ClosedRange<WallTime>
    ) -> Bool {
        rollouts.leavesToOther(
            audience.tokenBytes(of: token), of: traits(of: route), writtenIn: written)
    }
}
