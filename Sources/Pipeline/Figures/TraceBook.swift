// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel

/// Follows sampled events and makes spans of them: `event` from its reading until nothing holds its
/// offset any more, in it `plan` for the making of its pushes, and in that a `push` for each
/// request to APNs. Facts come in while they happen, and finished spans are taken out.
///
/// Everything is bounded by `TraceSettings`, and nothing waits for it: what finds no room is
/// counted and left out. Where no event is sampled, an event costs a look at `isOn` and a push one at
/// `isFollowing`. While an event is followed, each push of others costs a look at its bit as well,
/// and a hash only if the bit is set.
///
/// A push that answers for several events belongs to the oldest, as its `apns-id` does. The others
/// are told in their plan's span that they have joined it.
struct TraceBook {
    /// Whether events are to be sampled.
    let isOn: Bool
    /// Whether any event is under way that is traced.
    private(set) var isFollowing = false
    private(set) var finished: [Span] = []
    private(set) var counts = TraceCounts()
    private let settings: TraceSettings?
    private var rows: [RecordPosition: Row] = [:]
    /// The bits of all events in `rows`, and until the next full sweep of some that are over.
    private var bits: UInt64 = 0
    /// Events of which a request has ended since the last sweep, so that they may be over.
    private var touched: Set<RecordPosition> = []
    private var sweptAt = MonotonicTime(nanoseconds: .min)
    private var random: SplitMix64

    init(_ settings: TraceSettings?, seed: UInt64) {
        self.settings = settings
        isOn = settings != nil
        // Another seed than those of the jitters.
        random = SplitMix64(seed: seed ^ 0x7472_6163_6562_6F6F)
    }

    // MARK: Events begin

    /// What an event says of itself.
    struct Said {
        var id: UnsafeRawBufferPointer?
        var traceparent: UnsafeRawBufferPointer?
    }

    /// An event was read. If it is sampled and there is room, it is followed from here on.
    ///
    /// - Parameters:
    ///   - position: that of the event that its pushes name, which for a shard is the event that
    ///     was split.
    ///   - writtenAt: the record's timestamp; negative if it has none.
    /// - Returns: whether the event's span begins here, so that it tells what comes of this record.
    @discardableResult
    mutating func eventRead(
        _ position: RecordPosition, topic: String, _ said: Said, writtenAt: WallTime, now: Now
    ) -> Bool {
        guard let settings else { return false }
        let parent = said.traceparent.flatMap { TraceContext($0) }
        let isSampled =
            parent?.isSampled ?? (settings.ratio > 0 && random.nextFraction() < settings.ratio)
        // A shard beside the event that was split, or beside another shard of it, is part of that
        // one's span.
        guard isSampled, rows[position] == nil else { return false }
        guard rows.count < settings.eventsMax else {
            counts.eventsLeftOut += 1
            return false
        }
        counts.eventsTraced += 1
        var attributes = [
            Span.Attribute("messaging.system", .text("kafka")),
            Span.Attribute("messaging.operation.type", .text("process")),
            Span.Attribute("messaging.destination.name", .text(topic)),
            Span.Attribute(
                "messaging.destination.partition.id", .text("\(position.partition)")),
            Span.Attribute("messaging.kafka.offset", .integer(Int(position.offset))),
        ]
        if let id = Correlation(checking: said.id, traceparent: nil).id {
            attributes.append(Span.Attribute("messaging.message.id", .text(id)))
        }
        rows[position] = Row(
            trace: parent?.trace ?? newTrace(), parent: parent?.span, event: newSpan(),
            plan: newSpan(), startedAt: now.monotonic, attributes: attributes,
            age: writtenAt.milliseconds < 0 ? nil : max(.zero, now.wall - writtenAt))
        bits |= Self.bit(of: position)
        isFollowing = true
        return true
    }

    private mutating func newTrace() -> TraceID {
        TraceID(high: random.next() | 1, low: random.next())
    }

    private mutating func newSpan() -> SpanID {
        SpanID(rawValue: max(1, random.next()))
    }

    // MARK: Events go on

    func isFollowed(_ position: RecordPosition?) -> Bool {
        // `rows[position]` would copy the row.
        guard let position, bits & Self.bit(of: position) != 0 else { return false }
        return rows.index(forKey: position) != nil
    }

    private static func bit(of position: RecordPosition) -> UInt64 {
        1 &<< UInt64(truncatingIfNeeded: position.offset &+ Int64(position.partition))
    }

    /// What a record that is written for the event says of its trace; nil if it is not followed.
    func context(of position: RecordPosition?) -> TraceContext? {
        guard let position, let row = rows[position] else { return nil }
        return TraceContext(trace: row.trace, span: row.event, isSampled: true)
    }

    /// A claim was made for the event: it goes on until that has been given back.
    mutating func held(_ claim: OffsetClaim, for position: RecordPosition?) {
        if let position { rows[position]?.claims.append(claim) }
    }

    /// A fan-out answers for the event: its pushes are being made until that ends.
    mutating func fanningOut(_ number: Int, of subject: SubjectID, for position: RecordPosition?) {
        if let position { rows[position]?.fanOuts.append((subject, number)) }
    }

    /// Some of the event's pushes were made, and nothing else, between the two tallies.
    mutating func planned(_ end: Tally, since start: Tally, for position: RecordPosition?) {
        if let position { rows[position]?.tally.add(end, since: start) }
    }

    mutating func split(_ position: RecordPosition?) {
        if let position { rows[position]?.isSplit = true }
    }

    mutating func read(_ outcome: Outcome, _ position: RecordPosition) {
        rows[position]?.outcome = outcome
    }

    /// The event has come to nobody; of one that was pushed its requests tell.
    mutating func read(_ outcome: ListOutcome, _ position: RecordPosition) {
        switch outcome {
        case .known(.unmatched): read(.unmatched, position)
        case .known(.passedOver): read(.passedOver, position)
        default: break
        }
    }

    // MARK: Requests end

    /// A request to APNs for the event has ended.
    ///
    /// - Parameter describe: fills in what is known of the push. It is called only where the
    ///   request becomes a span.
    mutating func requestEnded(
        for position: RecordPosition, sentAt: MonotonicTime, now: MonotonicTime,
        describe: (TraceSettings, inout Span) -> Void
    ) {
        guard let settings, let row = rows[position] else { return }
        rows[position]!.requests += 1
        touched.insert(position)
        guard row.requests < settings.requestsMax else { return }
        var span = Span(
            "push", .client, trace: row.trace, id: newSpan(), parent: row.plan,
            start: min(sentAt, now), end: now)
        describe(settings, &span)
        finish(span)
    }

    // MARK: Events end

    /// Ends the spans of what is over. Called once a turn while anything is followed. Events of which
    /// no request has ended, such as those that wait for a dead letter's acknowledgement, are looked
    /// at less often, since a turn may take microseconds.
    mutating func sweep(
        now: MonotonicTime, _ tracker: borrowing OffsetTracker, _ fanOuts: borrowing FanOutTable
    ) {
        let isFull = now >= sweptAt + Self.sweepInterval
        if isFull { sweptAt = now }
        for position in (isFull ? Array(rows.keys) : Array(touched)).sorted(by: Self.isBefore) {
            sweep(position, now: now, tracker, fanOuts)
        }
        touched.removeAll(keepingCapacity: true)
        if isFull { bits = rows.keys.reduce(0) { $0 | Self.bit(of: $1) } }
        isFollowing = !rows.isEmpty
    }

    private static let sweepInterval = Duration.milliseconds(5)

    private mutating func sweep(
        _ position: RecordPosition, now: MonotonicTime, _ tracker: borrowing OffsetTracker,
        _ fanOuts: borrowing FanOutTable
    ) {
        guard let settings, var row = rows.removeValue(forKey: position) else { return }
        row.fanOuts.removeAll { fanOut in
            fanOuts.fanOut(of: fanOut.subject, in: fanOut.number..<fanOut.number + 1) == nil
        }
        row.claims.removeAll { !tracker.isHeld($0) }
        let isOver = row.fanOuts.isEmpty && row.claims.isEmpty
        let isOld = now - row.startedAt >= settings.ageMax
        if !row.isPlanned, row.fanOuts.isEmpty || isOld {
            row.isPlanned = true
            finish(Self.planSpan(of: row, end: now))
        }
        if isOver || isOld {
            finish(Self.eventSpan(of: row, end: now, isCut: !isOver, settings))
        } else {
            rows[position] = row
        }
    }

    private static func isBefore(_ left: RecordPosition, _ right: RecordPosition) -> Bool {
        (left.topic, left.partition, left.offset) < (right.topic, right.partition, right.offset)
    }

    private mutating func finish(_ span: Span) {
        guard let settings, finished.count < settings.spansMax else {
            counts.spansDropped += 1
            return
        }
        finished.append(span)
    }

    /// About the memory of what is followed and what is finished. The texts of attributes vary.
    var bytes: Int {
        let attribute = MemoryLayout<Span.Attribute>.stride
        let row = MemoryLayout<RecordPosition>.stride + MemoryLayout<Row>.stride
        return rows.count * (row + Self.attributesOfEvent * attribute)
            + finished.count * (MemoryLayout<Span>.stride + Self.attributesOfSpan * attribute)
    }

    private static let attributesOfEvent = 6
    /// Those of a push are about as many.
    private static let attributesOfSpan = 10

    /// Returns the finished spans and forgets them.
    mutating func takeFinished() -> [Span] {
        defer { finished = [] }
        return finished
    }

    func checkInvariants() {
        precondition(
            isFollowing == !rows.isEmpty,
            "the book is following exactly while it has events to follow")
        precondition(
            rows.keys.allSatisfy { bits & Self.bit(of: $0) != 0 },
            "the bit of each event that is followed is set")
        guard let settings else {
            return precondition(
                rows.isEmpty && finished.isEmpty, "nothing is traced without settings")
        }
        precondition(
            rows.count <= settings.eventsMax && finished.count <= settings.spansMax,
            "there are at most eventsMax events and spansMax finished spans")
    }
}
