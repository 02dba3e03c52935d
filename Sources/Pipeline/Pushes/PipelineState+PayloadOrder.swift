// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Planning
internal import PushModel

/// An older payload is not sent after a newer one of its token and collapse ID.
extension PipelineState {
    /// Whether this push would bring a payload that is older than one its token has received.
    func isOutdated(_ push: PushRequest) -> Bool {
        !payloadOrder.isEmpty && isOutdatedByOrder(push)
    }

    @inline(never)
    private func isOutdatedByOrder(_ push: PushRequest) -> Bool {
        let token = audience.tokenBytes(of: push.token)
        let hash = payloadOrder.hash(push.route, token, push.coalescingKey)
        return payloadOrder.isOutdated(hash, age: pushes.age(of: push.content))
    }

    /// Whether the payload of a waiting push is older than one of its key that was accepted since.
    @inline(never)
    func isSuperseded(_ slot: UInt32) -> Bool {
        let content = pushes[slot].content
        let token = audience.tokenBytes(of: pushes.token(of: slot))
        let hash = payloadOrder.hash(
            pushes.route(of: slot), token, pushes.coalescingKey(of: slot))
        let age = pushes.age(of: content)
        // A push that comes from a row was not read here.
        return content.readSequence == 0
            ? payloadOrder.isSuperseded(hash, age: age) : payloadOrder.isOutdated(hash, age: age)
    }
}
