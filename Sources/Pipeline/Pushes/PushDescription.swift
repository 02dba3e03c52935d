// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
package import Delivery
internal import Intake
internal import Planning
package import PushModel
internal import RecordFormats

/// What is said of one push outside of this process, with names in the place of numbers.
package struct PushDescription: Sendable, Equatable {
    package var app: String
    package var environment: PushEnvironment
    package var tokenClass: TokenClass
    package var type: PushType
    package var token: [UInt8]
    package var apnsID: APNSID
    /// Empty where none is sent, and of a push that was not handed over.
    package var collapseID: [UInt8] = []
    /// Of the oldest event that the push answers for; empty if nobody shows it any more.
    package var subject: [UInt8] = []
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
    package func description(ofHandedOver slot: PushSlot) -> PushDescription {
        state.description(ofHandedOver: slot)
    }
}

extension PipelineState {
    /// What is to be said of a push that was handed over, as the slab has it.
    func description(ofHandedOver slot: PushSlot) -> PushDescription {
        let push = pushes[slot]
        let wire = slab.push(slot).pointee
        var description = describe(
            push.content, to: UnsafeRawBufferPointer(slab.token(slot)), push.route)
        (description.type, description.apnsID) = (wire.type, wire.apnsID)
        description.collapseID = Array(
            UnsafeBufferPointer(start: wire.collapseID, count: Int(wire.collapseIDBytes)))
        addSubject(ofPayload: push.content.body, to: push.token, &description)
        return description
    }

    /// The same of one that was not. The slab has an earlier push in its slot.
    func description(ofWaiting slot: PushSlot) -> PushDescription {
        let push = pushes[slot]
        var description = describe(
            push.content, to: audience.tokenBytes(of: push.token), push.route)
        addSubject(ofPayload: push.content.body, to: push.token, &description)
        return description
    }

    /// What a push with this content says of itself.
    func describe(
        _ content: PushContent, to token: UnsafeRawBufferPointer, _ id: RouteID
    ) -> PushDescription {
        let route = routing[id]
        var description = PushDescription(
            app: routing.name(of: route.app), environment: route.environment,
            tokenClass: route.tokenClass, type: content.type, token: Array(token),
            apnsID: apnsID(content.origin, token: token))
        description.subject = subject(content.subject, tag: content.subjectTag, app: route.app)
        if let origin = content.origin {
            description.eventID = correlations.correlation(of: origin).id
            let source = source(origin)
            description.event = .init(
                topic: source.topic, partition: source.partition, offset: source.offset)
        }
        return description
    }

    private func addSubject(
        ofPayload body: BodyID, to token: TokenID, _ description: inout PushDescription
    ) {
        guard description.subject.isEmpty, let payload = payload(body, to: token) else { return }
        description.subject = payload.subject
    }
}
