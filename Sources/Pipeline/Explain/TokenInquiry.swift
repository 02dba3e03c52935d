// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Planning
package import PushModel
internal import RecordFormats

/// A question about tokens that is being answered. The index is large and the planner thread has
/// pushes to send, so each call does a part, about 100 µs of work. It only reads: the pipeline is
/// borrowed. What changes in the index meanwhile may be missing.
package struct TokenInquiry: Sendable {
    /// States, in their order; each finds tokens in another way, or says more of those found:
    /// - `lists`: goes through the lists of the subject, one for each app.
    /// - `registrations`: looks up the installation's registrations, one app after another.
    /// - `tokens`: goes through all tokens. Followed by `rows`.
    /// - `rows`: goes through all registrations, for what the found tokens show.
    /// - `states`: describes the found tokens.
    /// - `deferred`: goes through the deferred pushes of this worker.
    private enum Stage: Sendable {
        case lists([AppID], position: Int)
        case registrations([AppID], Place)
        case tokens(cursor: UInt32)
        case rows(cursor: UInt32)
        case states(position: Int)
        case deferred(row: UInt32)
        case ended
    }

    /// A row of one of the registrations that the installation may have in an app.
    private struct Place: Sendable {
        /// Counts the environments of each handler. Handlers are only ever added.
        var key = 0
        var row = 0
    }

    /// A token that is known by its bytes, since its row may be another token's in the next turn.
    struct FoundToken: Hashable, Sendable {
        var route: RouteID
        var bytes: [UInt8]
    }

    package typealias TokenHash = (UnsafeRawBufferPointer) -> UInt64

    private let question: TokenQuestion
    private var stage = Stage.ended
    package private(set) var explanation = TokenExplanation()
    private var found: [FoundToken] = []
    /// What the question has led to for each of the found tokens.
    private var places: [ExplainedToken.Places] = []
    /// The position of each token in `found`.
    private var positions: [FoundToken: Int] = [:]

    /// How much of each kind of work takes about 100 µs: most of it is cache misses, and to hash a
    /// token or to look for its outcomes costs more.
    private static let described = 2
    private static let looked = 500
    private static let hashed = 150
    private static let gathered = 100

    package init(_ question: TokenQuestion, _ pipeline: borrowing PushPipeline) {
        self.question = question
        explanation.restrictions = pipeline.restrictions.explained(
            topics: pipeline.state.settings.eventTopics)
        let routing = pipeline.state.routing
        let name: String? =
            switch question {
            case .subject(_, let app): app
            case .installation(_, let app, _, _): app
            case .token: nil
            }
        var apps = routing.apps.indices.map { AppID(rawValue: UInt16($0)) }
        if let name {
            // An app that no credential serves has no tokens.
            guard let app = routing.app(named: name) else { return }
            apps = [app]
        }
        switch question {
        case .subject: stage = .lists(apps, position: 0)
        case .installation: stage = .registrations(apps, Place())
        case .token: stage = .tokens(cursor: 0)
        }
    }

    /// Does the next part.
    /// - Parameter tokenID: the token ID of a token's bytes, as a number.
    /// - Returns: whether `explanation` is complete.
    package mutating func advance(
        _ pipeline: borrowing PushPipeline, now: Now, tokenID: TokenHash
    ) -> Bool {
        switch stage {
        case .lists(let apps, let position): stage = goThrough(apps, position, pipeline)
        case .registrations(let apps, let place): stage = lookUp(apps, from: place, pipeline)
        case .tokens(let cursor): stage = search(from: cursor, pipeline, tokenID)
        case .rows(let cursor): stage = findRows(from: cursor, pipeline)
        case .states(let position): stage = describe(position, pipeline, now: now, tokenID)
        case .deferred(let row): stage = findDeferred(from: row, pipeline, now: now)
        case .ended: break
        }
        if case .ended = stage { return true }
        return false
    }

    // MARK: Finding tokens

    private mutating func goThrough(
        _ apps: [AppID], _ position: Int, _ pipeline: borrowing PushPipeline
    ) -> Stage {
        guard let app = apps.first, case .subject(let subject, _) = question else {
            return .states(position: 0)
        }
        let next = Stage.lists(Array(apps.dropFirst()), position: 0)
        let list = subject.withUnsafeBytes { pipeline.state.audience.subject(app, $0) }
        guard let list else { return next }
        let count = pipeline.state.audience.count(list)
        var place = position
        let end = min(count, position + Self.gathered)
        while place < end, found.count < TokenExplanation.tokensMax {
            let entry = pipeline.state.audience.entry(list, at: place)
            if let found = find(entry.token, pipeline) {
                places[found].add(
                    ExplainedToken.Shown(
                        subject: subject,
                        kind: pipeline.state.audience.name(of: entry.kind, in: app),
                        hearsChanges: entry.hearsChanges))
            }
            place += 1
        }
        if found.count >= TokenExplanation.tokensMax {
            explanation.more += max(0, count - place)
            return next
        }
        return place < count ? .lists(apps, position: place) : next
    }

    private mutating func lookUp(
        _ apps: [AppID], from start: Place, _ pipeline: borrowing PushPipeline
    ) -> Stage {
        guard let app = apps.first,
            case .installation(let installation, _, let environment, let handler) = question
        else { return .states(position: 0) }
        let environments = environment.map { [$0] } ?? PushEnvironment.allCases
        let handlers = pipeline.index.handlers.names(of: app)
        let keys = environments.count * (handler == nil ? handlers.count : 1)
        var place = start
        var left = Self.gathered
        while place.key < keys, left > 0 {
            let (number, inHandler) = place.key.quotientAndRemainder(dividingBy: environments.count)
            let name = handler ?? String(decoding: handlers[number], as: UTF8.self)
            let key = RecordKey.registration(
                environment: environments[inHandler], app: pipeline.state.routing.name(of: app),
                installation: installation, handler: name)
            var rows: [RegistrationRow] = []
            let count = key.withUnsafeBytes { key in
                pipeline.state.audience.visitRows(
                    ofRegistration: key, from: place.row, most: left
                ) { rows.append($0) }
            }
            let registration = ExplainedToken.RegistrationName(
                installation: installation, handler: name)
            for row in rows {
                guard let position = find(row.token, pipeline) else { continue }
                places[position].add(registration)
                places[position].add(pipeline.state.shown(row))
            }
            left -= rows.count + 1
            place.row += rows.count
            if place.row >= count { place = Place(key: place.key + 1) }
        }
        guard place.key >= keys else { return .registrations(apps, place) }
        if handler == nil, pipeline.index.handlers.isFull(app) {
            explanation.gaps.insert(.manyHandlers)
        }
        return .registrations(Array(apps.dropFirst()), Place())
    }

    private mutating func search(
        from cursor: UInt32, _ pipeline: borrowing PushPipeline, _ tokenID: TokenHash
    ) -> Stage {
        guard case .token(let wanted) = question else { return .ended }
        var matches: [TokenID] = []
        let next = pipeline.state.audience.visitTokens(from: cursor, most: Self.hashed) { token in
            if tokenID(pipeline.state.audience.tokenBytes(of: token)) == wanted {
                matches.append(token)
            }
        }
        for token in matches { _ = find(token, pipeline) }
        return next.map { .tokens(cursor: $0) } ?? .rows(cursor: 0)
    }

    /// Returns the token's position in `found`; nil if there is no room for another one.
    private mutating func find(_ token: TokenID, _ pipeline: borrowing PushPipeline) -> Int? {
        let token = FoundToken(
            route: pipeline.state.audience.route(of: token),
            bytes: Array(pipeline.state.audience.tokenBytes(of: token)))
        if let position = positions[token] { return position }
        guard found.count < TokenExplanation.tokensMax else {
            explanation.more += 1
            return nil
        }
        positions[token] = found.count
        found.append(token)
        places.append(ExplainedToken.Places())
        return found.count - 1
    }

    private mutating func findRows(
        from cursor: UInt32, _ pipeline: borrowing PushPipeline
    ) -> Stage {
        var wanted: [TokenID: Int] = [:]
        for (position, token) in found.enumerated() {
            guard let row = pipeline.row(of: token) else { continue }
            if places[position].rows < pipeline.state.audience.rowCount(of: row) {
                wanted[row] = position
            }
        }
        // Once all rows are found the rest of the index need not be looked at.
        guard !wanted.isEmpty else { return .states(position: 0) }
        var rows: [(position: Int, row: RegistrationRow)] = []
        let next = pipeline.state.audience.visitRows(from: cursor, most: Self.looked) { row in
            if let position = wanted[row.token] { rows.append((position, row)) }
        }
        for (position, row) in rows { places[position].add(pipeline.state.shown(row)) }
        return next.map { .rows(cursor: $0) } ?? .states(position: 0)
    }

    // MARK: What is known of them

    private mutating func describe(
        _ position: Int, _ pipeline: borrowing PushPipeline, now: Now, _ tokenID: TokenHash
    ) -> Stage {
        let end = min(found.count, position + Self.described)
        for place in position..<end {
            explanation.tokens.append(
                pipeline.explained(found[place], places[place], now: now, tokenID))
        }
        return end < found.count ? .states(position: end) : .deferred(row: 0)
    }

    private mutating func findDeferred(
        from first: UInt32, _ pipeline: borrowing PushPipeline, now: Now
    ) -> Stage {
        guard !found.isEmpty else { return .ended }
        let last = pipeline.deferral.table.rowEnd
        let end = max(first, min(first + UInt32(Self.looked), last))
        for row in first..<end {
            guard let until = pipeline.deferral.table.waitsUntil(row) else { continue }
            let token = FoundToken(
                route: pipeline.deferral.table.route(of: row),
                bytes: Array(pipeline.deferral.table.tokenBytes(of: row)))
            guard let position = positions[token] else { continue }
            let content = pipeline.deferral.table.content(of: row)
            if content.isSent { continue }
            explanation.tokens[position].add(
                ExplainedPush(
                    state: .deferred(until: now.wall(at: until)), type: content.push.type,
                    hasPayload: content.push.body != .none, attempts: Int(content.past.attempts),
                    expiresAt: now.wall(at: content.push.expiresAt)))
        }
        return end < last ? .deferred(row: end) : .ended
    }
}
