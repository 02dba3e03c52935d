// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Planning
internal import PushModel

/// Describes a token for people.
extension PushPipeline {
    /// The row of a token; nil if the index does not have it any more.
    func row(of token: TokenInquiry.FoundToken) -> TokenID? {
        token.bytes.withUnsafeBytes { state.audience.token(token.route, $0) }
    }

    func explained(
        _ token: TokenInquiry.FoundToken, _ places: ExplainedToken.Places, now: Now,
        _ tokenID: TokenInquiry.TokenHash
    ) -> ExplainedToken {
        let route = state.routing[token.route]
        var explained = ExplainedToken(
            id: token.bytes.withUnsafeBytes(tokenID), app: state.routing.name(of: route.app),
            environment: route.environment, tokenClass: route.tokenClass,
            apnsTopic: route.apnsTopic, places: places, isRegistered: false, isSuppressed: false)
        explained.breakers = state.breakers.tripped(token.route, state.routing, now: now.monotonic)
        explained.restrictions =
            restrictions.explained(route, state.routing)
            + restrictions.explained(
                subjects: places.shows.compactMap(\.subject), app: explained.app)
        if let row = row(of: token) { explain(row, &explained, now: now) }
        return explained
    }

    private func explain(_ token: TokenID, _ explained: inout ExplainedToken, now: Now) {
        let bytes = state.audience.tokenBytes(of: token)
        let route = state.audience.route(of: token)
        explained.isRegistered = state.audience.isRegistered(token)
        if explained.isRegistered {
            explained.registeredAt = state.audience.registeredAt(of: token)
        }
        explained.suppression = state.audience.suppression(of: token)
        explained.isSuppressed = state.audience.isSuppressed(token)
        for slot in state.pushes(of: token) { explained.add(state.explainedPush(slot, now: now)) }
        explained.heldUntil = state.breakers.held(bytes, route, now: now.monotonic)
            .map { now.wall(at: $0) }
        if let type = state.traits(of: route).changeType, state.budgets.limit(of: type) > 0 {
            explained.sentToday = (
                state.budgets.used(token, bytes, now: now.wall), state.budgets.limit(of: type)
            )
        }
        explained.outcomes = outcomes(of: bytes, route)
    }

    /// The last outcomes of pushes to this token, newest first.
    private func outcomes(
        of token: UnsafeRawBufferPointer, _ route: RouteID
    ) -> [ExplainedOutcome] {
        var outcomes = handover.recent.acceptances(of: token, route).map {
            ExplainedOutcome(at: $0.stamp.at, kind: .answered, status: 200, apnsID: $0.apnsID)
        }
        let unsent =
            handover.recent.failures(of: token, route) + state.unsubscribed(of: token, route)
        outcomes += unsent.map { failure in
            ExplainedOutcome(
                at: failure.stamp.at, type: failure.type, kind: failure.kind,
                status: failure.status, reason: failure.reason, apnsID: failure.apnsID,
                event: failure.origin.map {
                    (state.origins.names[Int($0.topic)], $0.partition, $0.offset)
                },
                drop: failure.kind == .dropped
                    ? restrictions.drop(
                        of: state.routing[route], state.routing, at: failure.stamp.at) : nil)
        }
        return Array(outcomes.sorted { $0.at > $1.at }.prefix(ExplainedToken.outcomesMax))
    }
}

extension PipelineState {
    /// The slots of the token's pushes.
    fileprivate func pushes(of token: TokenID) -> [UInt32] {
        let cell = audience.pending(token)
        return (cell == 0 ? [] : [cell - 1]) + payloadPushes.slots(of: token)
    }

    fileprivate func explainedPush(_ slot: UInt32, now: Now) -> ExplainedPush {
        let push = pushes[slot]
        let state: ExplainedPush.State
        if let until = pushes.restsUntil(slot) {
            state = .resting(until: now.wall(at: until))
        } else {
            state = push.state == .inFlight ? .inFlight : .queued
        }
        return ExplainedPush(
            state: state, type: push.content.type, hasPayload: push.content.body != .none,
            attempts: Int(push.attempts), expiresAt: now.wall(at: push.content.expiresAt),
            hasFollowUp: push.hasFollowUp)
    }

    /// A row of a registration, with names; nil for that of the installation's list.
    func shown(_ row: RegistrationRow) -> ExplainedToken.Shown? {
        let scope = row.subject.map { audience.scope(of: $0) }
        if scope == .installation { return nil }
        let app = traits(of: audience.route(of: row.token)).app
        return ExplainedToken.Shown(
            subject: scope == .subject
                ? row.subject.map { Array(audience.subjectBytes(of: $0)) } : nil,
            kind: audience.name(of: row.kind, in: app), hearsChanges: row.hearsChanges)
    }
}
