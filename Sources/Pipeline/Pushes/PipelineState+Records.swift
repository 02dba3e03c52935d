// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats

/// Makes what records say of a push, with names in the place of numbers.
extension PipelineState {
    /// The letter of one push that has failed for good, with this push's token alone.
    func letter(for slot: UInt32, reason: String, status: UInt16, now: Now) -> DeadLetter {
        let push = pushes[slot]
        let route = routing[push.route]
        let firstAt = now.wall(at: push.firstTriedAt)
        var letter = DeadLetter(
            reason: reason, source: source(push.content.origin), firstAt: firstAt,
            lastAt: now.wall, attempts: Int(push.attempts) + 1,
            subject: subject(of: push.content, app: route.app),
            targets: [
                DeadLetter.Target(
                    token: Array(slab.token(slot)), environment: route.environment,
                    apnsTopic: route.apnsTopic)
            ])
        letter.app = routing.name(of: route.app)
        if let origin = push.content.origin {
            letter.correlation = correlations.correlation(of: origin)
        }
        letter.status = status == 0 ? nil : status
        if let payload = payload(push.content.body, to: push.token) {
            letter.original = DeadLetter.Original(key: nil, value: payload.body)
            letter.collapseID = payload.collapseID
            if letter.subject.isEmpty, payload.origin == push.content.origin {
                letter.subject = payload.subject
            }
            if payload.subject != letter.subject { letter.payloadSubject = payload.subject }
            letter.installation = payload.installation
            if payload.origin != push.content.origin {
                letter.payloadSource = payload.origin.map { source($0) }
            }
        }
        return letter
    }

    /// A copy of the payload for a record, with a subject of its event that the token shows.
    func payload(_ body: BodyID, to token: TokenID) -> StoredPayload? {
        pushes.bodies.payload(body) { audience.mayShow(token, $0, $1) }
    }

    /// The record of `deferred` for a push with this content.
    func record(
        _ content: DeferredContent, route: RouteID, payload: StoredPayload?, now: Now
    ) -> DeferredPush {
        func wall(_ time: MonotonicTime) -> WallTime { now.wall(at: time) }
        let route = routing[route]
        let push = content.push
        var record = DeferredPush(
            notBefore: wall(push.notBefore), expiresAt: wall(push.expiresAt),
            tokenClass: route.tokenClass, attempts: Int(content.past.attempts))
        record.priority = push.priority
        record.expiration = push.expiration
        record.source = push.origin.map { source($0) }
        record.sourceAt = push.writtenAt.milliseconds > 0 ? push.writtenAt : nil
        record.subject = subject(of: push, app: route.app)
        record.firstAt = content.past.firstTriedAt.map(wall)
        if let payload {
            record.payload = EventPayload(
                body: payload.body, type: push.type, activity: payload.activity)
            record.payloadAt = payload.readAt
            if record.subject.isEmpty, payload.origin == push.origin {
                record.subject = payload.subject
            }
            if payload.subject != record.subject { record.payloadSubject = payload.subject }
            record.installation = payload.installation
            if payload.origin != push.origin {
                record.payloadSource = payload.origin.map { source($0) }
            }
            record.collapseID = payload.collapseID
        }
        return record
    }

    /// The push's subject; empty if nobody shows it any more, since its number may mean another
    /// subject by now, and where it is for a whole kind or an installation.
    private func subject(of push: PushContent, app: AppID) -> [UInt8] {
        subject(push.subject, tag: push.subjectTag, app: app)
    }

    /// The same of what a push knows of its subject.
    func subject(_ subject: SubjectID, tag: UInt32, app: AppID) -> [UInt8] {
        guard subject != .none else { return [] }
        let bytes = audience.subjectBytes(of: subject)
        let hash = audience.hash(app, bytes, audience.scope(of: subject))
        guard UInt32(truncatingIfNeeded: hash) == tag, audience.subject(app, bytes) == subject
        else { return [] }
        return Array(bytes)
    }

    /// The subject, or the name of a kind if the list is of all that is of that kind; empty if nobody
    /// shows it any more.
    func name(of list: SubjectID, tag: UInt32, app: AppID) -> [UInt8] {
        guard list != .none, audience.scope(of: list) == .kindWide else {
            return subject(list, tag: tag, app: app)
        }
        let bytes = audience.subjectBytes(of: list)
        let hash = audience.hash(app, bytes, .kindWide)
        guard UInt32(truncatingIfNeeded: hash) == tag,
            audience.list(.kindWide, app, bytes, hash: hash) == list
        else { return [] }
        return Array(bytes)
    }

    /// The position as records give it. A dead letter must name an event, so an unknown position
    /// becomes the first offset of the first topic.
    func source(_ position: RecordPosition?) -> DeadLetter.Source {
        DeadLetter.Source(
            topic: origins.names[Int(position?.topic ?? 0)], partition: position?.partition ?? 0,
            offset: position?.offset ?? 0)
    }

    /// The position with the topic's number; nil where records have named too many topics that this
    /// worker does not read.
    mutating func position(_ source: DeadLetter.Source) -> RecordPosition? {
        origins.number(of: source.topic).map { topic in
            RecordPosition(topic: topic, partition: source.partition, offset: source.offset)
        }
    }

    /// Whether the token's suppression is still the one that this record contains.
    func isLatest(_ suppression: TicketTable.IssuedSuppression) -> Bool {
        suppression.token.withUnsafeBytes { bytes in
            audience.token(suppression.route, bytes).flatMap {
                audience.suppressionRegisteredAt($0)
            }
        } == suppression.registeredAt
    }

    /// The `apns-id` of a push to this token for this event.
    func apnsID(_ origin: RecordPosition?, token: UnsafeRawBufferPointer) -> APNSID {
        var hash = StableHash(seed: originHash(origin).low)
        hash.combine(token)
        return APNSID(hash: hash.finish())
    }

    /// Identifies an event across workers and restarts.
    func originHash(_ origin: RecordPosition?) -> StableHash.Value {
        guard let origin else { return StableHash.event(topicSeed: 0, partition: 0, offset: 0) }
        return StableHash.event(
            topicSeed: origins.seeds[Int(origin.topic)], partition: origin.partition,
            offset: origin.offset)
    }
}
