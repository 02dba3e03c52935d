// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import RecordSchemas

/// What is known of schemas, which are wanted, and when the registry is asked for the next. It decides
/// alone by what it is told, without a clock or a network.
struct SchemaBook {
    /// What came of asking for a schema.
    enum Outcome: Sendable {
        case schema(RecordSchema)
        case unknown(String)
        case unusable(String)
        /// - retryAfter: how long the registry asks to be left alone; zero if it does not.
        case unreachable(String, retryAfter: Duration)
    }

    private enum Entry {
        case wanted
        case known(RecordSchema)
        case unknown(String, until: MonotonicTime)
        case unusable(String, until: MonotonicTime)
    }

    private let settings: RegistrySettings
    private var entries: [SchemaID: Entry] = [:]
    /// Each list has the oldest first.
    private var wanted: [SchemaID] = []
    private var known: [SchemaID] = []
    private var refused: [SchemaID] = []
    private(set) var knownBytes = 0
    /// Why the registry gives no answer; nil since its last answer.
    private(set) var failure: Failure?
    private var nextTry = MonotonicTime(nanoseconds: .min)
    private var random: SplitMix64

    struct Failure: Sendable, Equatable {
        var cause: String
        var since: MonotonicTime
        var tries: Int
    }

    private static let backoff = Backoff(least: .seconds(1), most: .seconds(60))

    init(_ settings: RegistrySettings, seed: UInt64) {
        self.settings = settings
        random = SplitMix64(seed: seed)
    }

    var knownCount: Int { known.count }
    var wantedCount: Int { wanted.count }

    /// What is known of a schema. One that is not known is wanted from now on.
    mutating func lookup(_ schema: SchemaID, now: MonotonicTime) -> SchemaAnswer {
        switch entries[schema] {
        case .known(let schema): return .known(schema)
        case .unknown(let reason, let until) where now < until: return .unknown(reason)
        case .unusable(let reason, let until) where now < until: return .unusable(reason)
        case .wanted: break
        default: want(schema)
        }
        return failure.map { .unreachable($0.cause) } ?? .pending
    }

    private mutating func want(_ schema: SchemaID) {
        // Whoever waits for it asks again when one of the others has come.
        guard wanted.count < settings.wantedMax else { return }
        if entries[schema] != nil { refused.removeAll { $0 == schema } }
        entries[schema] = .wanted
        wanted.append(schema)
    }

    /// The schema to ask for, and when; nil if none is wanted.
    var next: (schema: SchemaID, at: MonotonicTime)? { wanted.first.map { ($0, nextTry) } }

    /// Enters what came of asking for the schema that was the next.
    mutating func ended(_ schema: SchemaID, _ outcome: Outcome, now: MonotonicTime) {
        guard case .wanted = entries[schema] else {
            preconditionFailure("a schema that nobody has wanted")
        }
        if case .unreachable(let cause, let retryAfter) = outcome {
            let tries = (failure?.tries ?? 0) + 1
            failure = Failure(cause: cause, since: failure?.since ?? now, tries: tries)
            let delay = Self.backoff.delay(attempt: tries - 1, random: &random)
            nextTry = now + max(delay, retryAfter)
            return
        }
        failure = nil
        nextTry = now
        wanted.removeAll { $0 == schema }
        switch outcome {
        case .schema(let read):
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
        case .unreachable: break
        }
    }

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
