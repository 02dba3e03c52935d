// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import SchemaCodecs

/// What is known of schemas, which are wanted, and which is asked for next. It decides alone by what
/// it is told, without a clock or a network.
///
/// A schema that the registry does not give goes behind the others, and waits for longer each time:
/// it delays no other one. All wait together only while no instance can be reached, or while the registry
/// has asked to be left alone.
struct SchemaBook {
    /// What came of asking for a schema.
    enum Outcome: Sendable {
        case schema(RecordSchema)
        case unknown(String)
        case unusable(String)
        /// The registry was reached, and has given neither the schema nor its word that there is none.
        ///
        /// - retryAfter: how long it asks to be left alone; zero if it does not.
        /// - isForAll: whether it said so of all requests, by 429 or 503.
        case failed(String, retryAfter: Duration, isForAll: Bool = false)
        /// No instance could be connected to.
        case unreachable(String)
    }

    /// What a fetcher, which asks for one schema at a time, is to do.
    enum Turn: Equatable {
        case fetch(SchemaID)
        case wait(until: MonotonicTime)
        /// Nothing is wanted, or the fetchers that are fetching go on.
        case end
    }

    private enum Entry {
        case wanted(Wanted)
        case known(RecordSchema)
        case unknown(String, until: MonotonicTime)
        case unusable(String, until: MonotonicTime)
    }

    private struct Wanted {
        /// When somebody last asked for it.
        var askedAt: MonotonicTime
        /// When the registry may be asked.
        var due: MonotonicTime
        var failures = 0
        /// Why it failed last.
        var cause: String?
        /// How many schemas had been given when it failed last.
        var givenBefore = 0
        var isFetched = false
    }

    private let settings: RegistrySettings
    private var entries: [SchemaID: Entry] = [:]
    /// The wanted schemas that are not being fetched, by when they are due.
    private var waiting: [SchemaID] = []
    /// How many are being fetched, and how many of them have failed before.
    private var fetching = 0
    private var retrying = 0
    /// Each list has the oldest first.
    private var known: [SchemaID] = []
    private var refused: [SchemaID] = []
    private(set) var knownBytes = 0
    /// Why no instance can be reached; nil since one was.
    private(set) var failure: Failure?
    /// Until when the registry has asked to be left alone, and in which words.
    private var rest: (cause: String, until: MonotonicTime)?
    /// How many schemas the registry has given so far.
    private var given = 0
    private var forgotAt = MonotonicTime(nanoseconds: .min)
    private var random: SplitMix64

    struct Failure: Sendable, Equatable {
        var cause: String
        var since: MonotonicTime
        var tries: Int
        var nextTry: MonotonicTime
    }

    private static let backoff = Backoff(least: .seconds(1), most: .seconds(60))
    private static let forgetsEvery = Duration.seconds(1)

    init(_ settings: RegistrySettings, seed: UInt64) {
        self.settings = settings
        random = SplitMix64(seed: seed)
    }

    var knownCount: Int { known.count }
    var wantedCount: Int { waiting.count + fetching }

    /// What is known of a schema. One that is not known is wanted from now on, until nobody has asked
    /// for it for a while.
    ///
    /// - Returns: also whether it has become wanted by this.
    mutating func lookup(_ schema: SchemaID, now: MonotonicTime) -> (SchemaAnswer, isNew: Bool) {
        switch entries[schema] {
        case .known(let schema): return (.known(schema), false)
        case .unknown(let reason, let until) where now < until: return (.unknown(reason), false)
        case .unusable(let reason, let until) where now < until: return (.unusable(reason), false)
        case .wanted(var wanted):
            wanted.askedAt = now
            entries[schema] = .wanted(wanted)
            let cause = failure?.cause ?? wanted.cause ?? resting(now)
            return (cause.map { .unreachable($0) } ?? .pending, false)
        default: return want(schema, now)
        }
    }

    private mutating func want(
        _ schema: SchemaID, _ now: MonotonicTime
    ) -> (SchemaAnswer, isNew: Bool) {
        // Whoever waits for it asks again, until there is room.
        guard wantedCount < settings.wantedMax else {
            return (.unreachable("\(wantedCount) other schemas are waited for"), false)
        }
        if entries[schema] != nil { refused.removeAll { $0 == schema } }
        enqueue(schema, Wanted(askedAt: now, due: now))
        return ((failure?.cause ?? resting(now)).map { .unreachable($0) } ?? .pending, true)
    }

    /// Why the registry is left alone; nil if it is not.
    private func resting(_ now: MonotonicTime) -> String? {
        rest.flatMap { now < $0.until ? $0.cause : nil }
    }

    /// Behind all that are due as early.
    private mutating func enqueue(_ schema: SchemaID, _ wanted: Wanted) {
        entries[schema] = .wanted(wanted)
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if self.wanted(waiting[middle]).due <= wanted.due {
                low = middle + 1
            } else {
                high = middle
            }
        }
        waiting.insert(schema, at: low)
    }

    private func wanted(_ schema: SchemaID) -> Wanted {
        guard case .wanted(let wanted) = entries[schema] else {
            preconditionFailure("a schema that is looked up here is still wanted")
        }
        return wanted
    }

    // MARK: Asking

    /// Whether a fetcher more would find something to do.
    func isDue(now: MonotonicTime) -> Bool { place(now) != nil }

    /// What one more fetcher is to do. Of a schema to fetch the end must be told by `ended`.
    mutating func turn(now: MonotonicTime) -> Turn {
        forgetUnwanted(now)
        if let place = place(now) {
            let schema = waiting.remove(at: place)
            var wanted = wanted(schema)
            wanted.isFetched = true
            entries[schema] = .wanted(wanted)
            fetching += 1
            if wanted.failures > 0 { retrying += 1 }
            return .fetch(schema)
        }
        guard let first = waiting.first else { return .end }
        let due = max(wanted(first).due, failure?.nextTry ?? now, rest?.until ?? now)
        return due > now ? .wait(until: due) : .end
    }

    /// The place of the schema to ask for; nil if it is not time. One fetcher is kept for those that have
    /// not failed before, so that answers which never come hold up none that would.
    private func place(_ now: MonotonicTime) -> Int? {
        // One fetcher finds out whether the registry is back.
        if let failure, now < failure.nextTry || fetching > 0 { return nil }
        if resting(now) != nil { return nil }
        guard let first = waiting.first, wanted(first).due <= now else { return nil }
        if retrying < settings.fetchersMax - 1 { return 0 }
        return waiting.firstIndex { wanted($0).failures == 0 }
    }

    /// Enters what came of asking for a schema.
    mutating func ended(_ schema: SchemaID, _ outcome: Outcome, now: MonotonicTime) {
        var wanted = wanted(schema)
        precondition(wanted.isFetched, "only a schema that is being fetched comes to an end")
        wanted.isFetched = false
        fetching -= 1
        if wanted.failures > 0 { retrying -= 1 }
        if case .unreachable(let cause) = outcome {
            notReached(cause, now)
            wanted.due = now
            return enqueue(schema, wanted)
        }
        failure = nil
        switch outcome {
        case .schema(let read):
            given += 1
            entries[schema] = .known(read)
            known.append(schema)
            knownBytes += Self.bytes(of: read)
            dropOldest()
        case .unknown(let reason):
            refuse(schema, .unknown(reason, until: now + settings.unknownLife))
        // A schema never changes. But the program may learn to read it, and the registry may mend
        // what it refers to.
        case .unusable(let reason):
            refuse(schema, .unusable(reason, until: now + settings.unknownLife))
        case .failed(let cause, let retryAfter, let isForAll):
            // Where others are given between its failures, what it says is about this schema.
            if isForAll, wanted.failures == 0 || wanted.givenBefore == given {
                rest = (cause, max(rest?.until ?? now, now + retryAfter))
            }
            wanted.givenBefore = given
            let delay = Self.backoff.delay(attempt: wanted.failures, random: &random)
            wanted.due = now + max(delay, retryAfter)
            wanted.failures += 1
            wanted.cause = cause
            enqueue(schema, wanted)
        case .unreachable: break
        }
    }

    private mutating func notReached(_ cause: String, _ now: MonotonicTime) {
        // Fetchers that had begun together fail together, which is one try.
        if let failure, now < failure.nextTry { return }
        let tries = (failure?.tries ?? 0) + 1
        failure = Failure(
            cause: cause, since: failure?.since ?? now, tries: tries,
            nextTry: now + Self.backoff.delay(attempt: tries - 1, random: &random))
    }

    /// Forgets the schemas that nobody waits for any more: their record was skipped, or its partition
    /// has another owner.
    private mutating func forgetUnwanted(_ now: MonotonicTime) {
        guard now >= forgotAt + Self.forgetsEvery else { return }
        forgotAt = now
        let unwanted = waiting.filter { wanted($0).askedAt + settings.wantedLife <= now }
        guard !unwanted.isEmpty else { return }
        for schema in unwanted { entries[schema] = nil }
        waiting = waiting.filter { entries[$0] != nil }
    }

    // MARK: Bounds

    private mutating func refuse(_ schema: SchemaID, _ entry: Entry) {
        entries[schema] = entry
        refused.append(schema)
        if refused.count > settings.refusedMax { entries[refused.removeFirst()] = nil }
    }

    /// The newest is kept whatever it takes, since somebody waits for it.
    private mutating func dropOldest() {
        while known.count > 1,
            known.count > settings.schemasMax || knownBytes > settings.schemaBytesMax
        {
            if case .known(let read) = entries.removeValue(forKey: known.removeFirst()) {
                knownBytes -= Self.bytes(of: read)
            }
        }
    }

    /// With what the tables themselves take for it.
    private static func bytes(of schema: RecordSchema) -> Int { schema.byteCount + 256 }
}
