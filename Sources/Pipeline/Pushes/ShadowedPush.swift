// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
package import Delivery
internal import Intake
internal import Planning
package import PushModel
internal import RecordFormats

/// What is said of a push that would have been sent.
package struct ShadowedPush: Sendable, Equatable {
    package var app: String
    package var environment: PushEnvironment
    package var tokenClass: TokenClass
    package var type: PushType
    package var token: [UInt8]
    package var apnsID: APNSID
    /// Empty where none is sent.
    package var collapseID: [UInt8]
    /// Of the oldest event that the push answers for; empty if nobody shows it any more.
    package var subject: [UInt8]
    /// The event's `id`; nil if it has none, or is not among the latest any more.
    package var eventID: String?
    /// Where that event is, as topic, partition and offset; nil where it is not known.
    package var event: Position?

    package struct Position: Sendable, Equatable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64
    }
}

extension PushPipeline {
    /// What is to be said of a push that was handed over and has not come back.
    package func shadowedPush(in slot: PushSlot) -> ShadowedPush {
        let push = state.pushes[slot]
        let route = state.routing[push.route]
        let wire = state.slab.push(slot).pointee
        var shadowed = ShadowedPush(
            app: state.routing.name(of: route.app), environment: route.environment,
            tokenClass: route.tokenClass, type: wire.type, token: Array(state.slab.token(slot)),
            apnsID: wire.apnsID,
            collapseID: Array(
                UnsafeBufferPointer(start: wire.collapseID, count: Int(wire.collapseIDBytes))),
            subject: state.subject(
                push.content.subject, tag: push.content.subjectTag, app: route.app))
        if shadowed.subject.isEmpty, let payload = state.payload(push.content.body, to: push.token)
        {
            shadowed.subject = payload.subject
        }
        if let origin = push.content.origin {
            shadowed.eventID = state.correlations.correlation(of: origin).id
            let source = state.source(origin)
            shadowed.event = .init(
                topic: source.topic, partition: source.partition, offset: source.offset)
        }
        return shadowed
    }
}
