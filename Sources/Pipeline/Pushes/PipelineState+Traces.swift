// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Tells the `TraceBook` of what happens. None of it is inlined: the path of a push that is not
/// traced has nothing of it but a look at a flag.
extension PipelineState {
    /// A request to APNs has ended; if its event is traced, it becomes a span.
    @inline(never)
    mutating func trace(_ outcome: PushOutcome, now: Now) {
        // One that was never sent is no request.
        guard outcome.sentAt.nanoseconds > 0,
            let origin = pushes[outcome.slot].content.origin, traces.isFollowed(origin)
        else { return }
        let push = pushes[outcome.slot]
        let route = routing[push.route]
        let wire = slab.push(outcome.slot).pointee
        let token = slab.token(outcome.slot)
        let reason =
            outcome.reason == .unknown ? slab.reasonText(outcome.slot) : outcome.reason.name
        let app = routing.name(of: route.app)
        traces.requestEnded(for: origin, sentAt: outcome.sentAt, now: now.monotonic) {
            settings, span in
            span.attributes = [
                Span.Attribute("lamplighter.app", .text(app)),
                Span.Attribute("apns.topic", .text(route.apnsTopic)),
                Span.Attribute("apns.environment", .text(route.environment.name)),
                Span.Attribute("apns.push_type", .text(wire.type.name)),
                Span.Attribute("apns.id", .text(wire.apnsID.text)),
                Span.Attribute("lamplighter.token_id", .text(settings.tokenName(token))),
                Span.Attribute("lamplighter.attempt", .integer(Int(push.attempts) + 1)),
            ]
            switch outcome.kind {
            case .answered:
                span.attributes.append(
                    Span.Attribute("http.response.status_code", .integer(Int(outcome.status))))
                guard outcome.status != 200 else { return }
                span.attributes.append(Span.Attribute("apns.reason", .text(reason)))
                span.failure = reason.isEmpty ? "\(outcome.status)" : reason
            case .unprocessed: span.failure = "not processed"
            case .unknown: span.failure = "no answer"
            case .expired: span.failure = "expired"
            }
        }
    }
}

extension FanOut {
    /// Claims the event that was read last.
    func claim(
        _ id: AssignmentID, for request: FanOutRequest, _ state: inout PipelineState
    ) -> OffsetClaim {
        let claim = state.tracker.claim(id)
        if state.traces.isFollowing { state.traces.held(claim, for: request.origin) }
        return claim
    }

    @inline(never)
    func note(_ event: Event, _ position: RecordPosition?, _ state: inout PipelineState) {
        guard let position else { return }
        if state.canary.isOn {
            state.canary.read(event, at: position, asked: state.pushesAsked)
        }
        state.correlations.note(id: event.id, traceparent: event.traceparent, of: position)
    }

    /// - Returns: the position that the event's span is kept under, which for a shard is that of the
    ///   event that was split; nil if no span began with this record.
    @inline(never)
    func trace(
        _ event: Event, _ writtenAt: WallTime, _ read: RecordRead, _ state: inout PipelineState
    ) -> RecordPosition? {
        let source = event.shard.flatMap { shard in
            state.position(
                DeadLetter.Source(
                    topic: shard.topic, partition: shard.partition, offset: shard.offset))
        }
        let position = source ?? read.position
        let isBegun = state.traces.eventRead(
            position, topic: state.origins.names[Int(position.topic)],
            TraceBook.Said(id: event.id, traceparent: event.traceparent), writtenAt: writtenAt,
            now: read.now)
        return isBegun ? position : nil
    }

    @inline(never)
    func trace(
        _ event: UnreadableEvent, _ read: RecordRead, _ claim: OffsetClaim,
        _ state: inout PipelineState
    ) {
        let position = read.position
        var id = event.correlation.id ?? ""
        var traceparent = event.correlation.traceparent ?? ""
        _ = id.withUTF8 { id in
            traceparent.withUTF8 { traceparent in
                state.traces.eventRead(
                    position, topic: state.origins.names[Int(position.topic)],
                    TraceBook.Said(
                        id: UnsafeRawBufferPointer(id),
                        traceparent: traceparent.isEmpty ? nil : UnsafeRawBufferPointer(traceparent)
                    ), writtenAt: event.record.timestamp,
                    now: read.now)
            }
        }
        state.traces.held(claim, for: position)
        state.traces.read(.unreadable(code: event.reason.code), position)
    }
}
