// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel

/// What is known of a traced event, and the spans that are made of it.
extension TraceBook {
    /// A traced event that is under way.
    struct Row {
        let trace: TraceID
        let parent: SpanID?
        let event: SpanID
        let plan: SpanID
        let startedAt: MonotonicTime
        /// What the span of the event says first.
        let attributes: [Span.Attribute]
        /// The time between the record's timestamp and its reading; nil if it has none.
        let age: Duration?
        /// The claims that were made for the event. It is over when all have been given back.
        var claims: [OffsetClaim] = []
        /// The fan-outs that answer for it and are under way.
        var fanOuts: [(subject: SubjectID, number: Int)] = []
        /// Whether the span of its plan has ended.
        var isPlanned = false
        var outcome = Outcome.matched
        var tally = Tally()
        var requests = 0
        var isSplit = false
    }

    /// What became of an event when it was read.
    enum Outcome: Equatable {
        case matched, unmatched, passedOver, expired
        case unreadable(code: String)
    }

    /// What came of the tokens that an event was for.
    struct Tally: Equatable {
        var queued = 0
        var coalesced = 0
        var suppressed = 0

        mutating func add(_ end: Tally, since start: Tally) {
            queued += end.queued - start.queued
            coalesced += end.coalesced - start.coalesced
            suppressed += end.suppressed - start.suppressed
        }
    }

    static func planSpan(of row: Row, end: MonotonicTime) -> Span {
        var span = Span(
            "plan", .internal, trace: row.trace, id: row.plan, parent: row.event,
            start: row.startedAt, end: end)
        span.attributes = [
            Span.Attribute("lamplighter.pushes.queued", .integer(row.tally.queued)),
            Span.Attribute("lamplighter.pushes.coalesced", .integer(row.tally.coalesced)),
            Span.Attribute("lamplighter.pushes.suppressed", .integer(row.tally.suppressed)),
            Span.Attribute("lamplighter.split", .flag(row.isSplit)),
        ]
        return span
    }

    static func eventSpan(
        of row: Row, end: MonotonicTime, isCut: Bool, _ settings: TraceSettings
    ) -> Span {
        var span = Span(
            "event", .consumer, trace: row.trace, id: row.event, parent: row.parent,
            start: row.startedAt, end: end)
        span.attributes = row.attributes
        span.attributes.append(Span.Attribute("lamplighter.outcome", .text(row.outcome.word)))
        if let age = row.age {
            span.attributes.append(
                Span.Attribute("lamplighter.age_ms", .integer(Int(age.nanoseconds / 1_000_000))))
        }
        span.attributes.append(Span.Attribute("lamplighter.requests", .integer(row.requests)))
        let left = row.requests - settings.requestsMax
        if left > 0 {
            span.attributes.append(Span.Attribute("lamplighter.requests.left_out", .integer(left)))
        }
        if isCut { span.attributes.append(Span.Attribute("lamplighter.unfinished", .flag(true))) }
        if case .unreadable(let code) = row.outcome { span.failure = code }
        return span
    }
}

extension TraceBook.Outcome {
    fileprivate var word: String {
        switch self {
        case .matched: "matched"
        case .unmatched: "unmatched"
        case .passedOver: "passedOver"
        case .expired: "expired"
        case .unreadable: "unreadable"
        }
    }
}
