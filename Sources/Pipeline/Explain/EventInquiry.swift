// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
package import Intake
internal import Planning
package import PushModel

/// A record that is tried without any effect: whom would it reach? It is read by the decoder and
/// judged by the filters that events go through. The pipeline is borrowed, so nothing is counted,
/// claimed or written. Like `TokenInquiry` it does a part in each call.
package struct EventInquiry: Sendable {
    private let record: TrialRecord
    package private(set) var explanation = EventExplanation()
    private var stage = Stage.reading
    /// The routes that its pushes would take.
    private var routes: Set<RouteID> = []
    private var looked = 0

    private enum Stage: Sendable {
        case reading
        /// Goes through the lists of the subject or of the kinds.
        case lists(TrialEvent, [List], position: Int)
        case ended
    }

    private struct List: Sendable {
        var name: [UInt8]
        var scope: ListScope
        /// Whether an operator drops the events.
        var isDropped: Bool
    }

    private static let lookedEachTime = 300

    package init(_ record: TrialRecord) { self.record = record }

    /// Does the next part.
    /// - Parameter tokenID: the token ID of a token's bytes, as a number.
    /// - Returns: whether `explanation` is complete.
    package mutating func advance(
        _ pipeline: borrowing PushPipeline, now: Now, tokenID: TokenInquiry.TokenHash
    ) -> Bool {
        switch stage {
        case .reading: stage = read(pipeline, now: now)
        case .lists:
            stage = goThrough(stage, pipeline, now: now, tokenID)
        case .ended: break
        }
        guard case .ended = stage else { return false }
        return true
    }

    // MARK: The record

    private mutating func read(_ pipeline: borrowing PushPipeline, now: Now) -> Stage {
        explanation.restrictions = pipeline.restrictions.explained(
            topics: [pipeline.state.settings.eventTopics[record.binding]]
        ).filter { $0.endedAt == nil }
        var decoder = EventDecoder(like: pipeline.fanOut.decoder)
        var record = record
        record.key = record.key.map { decoder.key(typed: $0, of: record.binding) }
        return record.lend { record, header in
            do throws(UnreadableRecord) {
                guard let event = try decoder.decode(record, now: now.wall, header: header) else {
                    explanation.isFiltered = true
                    explanation.filterReason =
                        decoder.reasonLeftOut(record, now: now.wall, header: header).text
                    return .ended
                }
                return begin(event, pipeline, now: now)
            } catch {
                explanation.unreadable = error
                return .ended
            }
        }
    }

    private mutating func begin(
        _ event: Event, _ pipeline: borrowing PushPipeline, now: Now
    ) -> Stage {
        explanation.event = EventExplanation.ReadEvent(
            app: pipeline.state.routing.name(of: event.app),
            subject: event.scope == .subject ? Array(event.subject) : [],
            installation: event.installation, environment: event.environment, kinds: event.kinds,
            classes: event.classes,
            time: event.time, expiresAt: event.expiresAt, isExpired: event.expiresAt <= now.wall,
            delay: event.delay, payload: event.payload?.type, collapseID: event.collapseID)
        let lists = lists(of: event, pipeline)
        for number in pipeline.state.routing.apps.indices
        where event.scope == .subject && !event.subject.isEmpty {
            let app = AppID(rawValue: UInt16(number))
            guard app != event.app,
                let other = pipeline.state.audience.subject(app, event.subject)
            else { continue }
            explanation.otherApps.append(
                (pipeline.state.routing.name(of: app), pipeline.state.audience.count(other)))
        }
        return .lists(TrialEvent(event), lists, position: 0)
    }

    private mutating func lists(
        of event: Event, _ pipeline: borrowing PushPipeline
    ) -> [List] {
        let dropped = pipeline.fanOut.dropped
        let isTopicDropped = dropped.topics[record.binding]
        guard !event.subject.isEmpty else {
            return
                (event.isAppWide ? pipeline.state.audience.kindNames(of: event.app) : event.kinds)
                .map {
                    List(name: Array($0.utf8), scope: .kindWide, isDropped: isTopicDropped)
                }
        }
        guard event.scope == .subject else {
            let name = Array(event.subject)
            return [List(name: name, scope: event.scope, isDropped: isTopicDropped)]
        }
        let subjects = [event.subject] + event.furtherSubjects
        add(
            pipeline.restrictions.explained(
                subjects: subjects.map { Array($0) },
                app: pipeline.state.routing.name(of: event.app)))
        return subjects.map {
            List(
                name: Array($0), scope: .subject,
                isDropped: isTopicDropped || dropped.isDropped($0, of: event.app))
        }
    }

    // MARK: Its audience

    private mutating func goThrough(
        _ stage: Stage, _ pipeline: borrowing PushPipeline, now: Now,
        _ tokenID: TokenInquiry.TokenHash
    ) -> Stage {
        guard case .lists(let event, let lists, let position) = stage else { return stage }
        guard let list = lists.first else { return end(pipeline, now: now) }
        let next = Stage.lists(event, Array(lists.dropFirst()), position: 0)
        guard let subject = pipeline.state.list(list.scope, list.name, of: event.app)
        else {
            return next
        }
        let count = pipeline.state.audience.count(subject)
        guard position < count else { return next }
        if looked >= EventExplanation.lookedMax {
            explanation.unseen += count - position
            return next
        }
        let asked = Asked(
            request: event.request(for: subject, pipeline.state, now: now),
            isDropped: list.isDropped)
        let last = min(count, position + Self.lookedEachTime)
        for place in position..<last {
            let entry = pipeline.state.audience.entry(subject, at: place)
            note(entry, asked, pipeline, now: now, tokenID)
        }
        looked += last - position
        return .lists(event, lists, position: last)
    }

    private mutating func note(
        _ entry: AudienceEntry, _ asked: Asked, _ pipeline: borrowing PushPipeline, now: Now,
        _ tokenID: TokenInquiry.TokenHash
    ) {
        let number = pipeline.state.audience.route(of: entry.token)
        var result = pipeline.state.result(
            for: entry, of: asked.request, route: number,
            isExpired: explanation.event?.isExpired ?? false, now: now.wall)
        if case .push = result {
            routes.insert(number)
            if asked.isDropped || pipeline.state.breakers.isDropping(number) {
                result = .passedOver(.dropped)
            }
        }
        let count = explanation.counts[result, default: 0]
        explanation.counts[result] = count + 1
        var most = EventExplanation.othersMax
        if case .push = result { most = EventExplanation.pushesMax }
        guard count < most else { return }
        let route = pipeline.state.routing[number]
        explanation.entries.append(
            EventExplanation.Entry(
                id: tokenID(pipeline.state.audience.tokenBytes(of: entry.token)),
                environment: route.environment, tokenClass: route.tokenClass,
                kind: pipeline.state.audience.name(of: entry.kind, in: route.app), result: result))
    }

    private mutating func end(_ pipeline: borrowing PushPipeline, now: Now) -> Stage {
        for route in routes.sorted(by: { $0.rawValue < $1.rawValue }) {
            add(
                pipeline.restrictions.explained(
                    pipeline.state.routing[route], pipeline.state.routing))
            for breaker in pipeline.state.breakers.tripped(
                route, pipeline.state.routing, now: now.monotonic)
            where !explanation.breakers.contains(breaker) {
                explanation.breakers.append(breaker)
            }
        }
        return .ended
    }

    private mutating func add(_ restrictions: [ExplainedRestriction]) {
        for restriction in restrictions
        where restriction.endedAt == nil && !explanation.restrictions.contains(restriction) {
            explanation.restrictions.append(restriction)
        }
    }
}

/// What the event asks of each token of one of its lists.
private struct Asked {
    let request: FanOutRequest
    /// Whether an operator drops its subject or its topic.
    let isDropped: Bool
}

/// What is kept of a decoded event, whose bytes are lent until the next one.
private struct TrialEvent: Sendable {
    let address: EventAddress
    let shard: TokenShard?
    let expiresAt: WallTime

    init(_ event: Event) {
        address = EventAddress(event)
        shard = event.shard?.tokens
        expiresAt = event.expiresAt
    }

    var app: AppID { address.app }

    /// What the event asks of each token of a list.
    func request(
        for subject: SubjectID, _ state: borrowing PipelineState, now: Now
    ) -> FanOutRequest {
        var request = state.request(address, of: subject)
        request.filter.shard = shard
        request.expiresAt = now.monotonic(at: expiresAt)
        return request
    }
}

extension TrialRecord {
    /// Lends the record as a Kafka client would.
    package func lend<Found>(
        _ body: (EventRecord, EventRecord.HeaderLookup) throws -> Found
    ) rethrows -> Found {
        // Values that are looked up must stay where they are: they lie in one block.
        var block: [UInt8] = []
        var slices: [String: Range<Int>] = [:]
        for (name, value) in headers {
            slices[name] = block.count..<block.count + value.count
            block += value
        }
        block.append(0)
        return try block.withUnsafeBytes { block in
            try Self.lend(key) { key in
                try Self.lend(value) { value in
                    let record = EventRecord(
                        binding: binding, key: key, value: value, timestamp: timestamp)
                    return try body(record) { name in
                        slices[name].map { UnsafeRawBufferPointer(rebasing: block[$0]) }
                    }
                }
            }
        }
    }

    private static func lend<Found>(
        _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> Found
    ) rethrows -> Found {
        guard let bytes else { return try body(nil) }
        return try bytes.withUnsafeBytes { try body($0) }
    }
}

extension PipelineState {
    /// What comes of the event for this entry.
    fileprivate func result(
        for entry: AudienceEntry, of request: FanOutRequest, route: RouteID, isExpired: Bool,
        now: WallTime
    ) -> EntryFate {
        let fate = FanOut.fate(for: entry, of: request, route: route, self)
        guard case .push = fate else { return fate }
        // It would end as it is read.
        if isExpired { return .passedOver(.expired) }
        return noPush(to: entry.token, route, writtenIn: now...now).map { .passedOver($0) } ?? fate
    }
}
