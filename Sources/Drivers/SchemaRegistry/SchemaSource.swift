// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import PushModel
package import SchemaCodecs
internal import Synchronization

/// Schemas by their numbers, fetched from a registry by a few threads of its own while some are wanted.
///
/// `lookup` never waits for the registry. A decoder keeps what it has made of a schema, so that it asks
/// once for each and not for each record.
package final class SchemaSource: Sendable {
    fileprivate struct State {
        var book: SchemaBook
        var counts = Counts()
        /// The instance that answered last, for the next thread.
        var preferred = 0
        /// How many threads run.
        var fetchers = 0
        /// Whether one of them waits until a schema is due. The others end meanwhile.
        var isWatched = false
        var isStopped = false
    }

    /// What has come of asking the registry, since the start.
    package struct Counts: Sendable, Equatable {
        package var fetched = 0
        package var unknown = 0
        package var unusable = 0
        package var failed = 0
        package var unreachable = 0

        package init() {}
    }

    /// How it stands with the registry.
    package struct Status: Sendable, Equatable {
        /// How many schemas are kept.
        package var known: Int
        /// How many schemas are waited for.
        package var wanted: Int
        /// Why no instance can be reached; nil if one can, or nothing was asked.
        package var failure: String?
        /// Since when none can.
        package var failingSince: MonotonicTime?
        package var counts: Counts
    }

    private let settings: RegistrySettings
    private let state: Mutex<State>
    /// Is called on a thread when something has come of asking.
    private let changed: @Sendable () -> Void

    /// - Parameter changed: wakes whoever waits for a schema, such as by `Waker.signal`. It is called
    ///   from another thread, and must not call back.
    package init(_ settings: RegistrySettings, changed: @escaping @Sendable () -> Void) {
        self.settings = settings
        self.changed = changed
        state = Mutex(State(book: SchemaBook(settings, seed: .random(in: .min ... .max))))
    }

    /// What is known of a schema. One that is not known is fetched, and `changed` is called then.
    package func lookup(_ schema: SchemaID) -> SchemaAnswer {
        let (answer, needsFetcher) = state.withLock { state in
            let now = Self.now()
            let (answer, isNew) = state.book.lookup(schema, now: now)
            // The first fetcher waits for its time as well, and one that could not be started is missed.
            let isIdle = state.fetchers == 0 && state.book.wantedCount > 0
            return (answer, (isIdle || isNew) && state.addsFetcher(settings, now, must: isIdle))
        }
        if needsFetcher { startFetcher() }
        return answer
    }

    package var status: Status {
        state.withLock { state in
            Status(
                known: state.book.knownCount, wanted: state.book.wantedCount,
                failure: state.book.failure?.cause, failingSince: state.book.failure?.since,
                counts: state.counts)
        }
    }

    /// Asks no more; a request under way ends by itself.
    package func stop() { state.withLock { $0.isStopped = true } }

    /// Asks the registry once, for a schema of any number, and waits for the answer.
    /// - Returns: why it gives none; nil if it does.
    package static func trial(_ settings: RegistrySettings) -> String? {
        var client = RegistryClient(settings)
        switch client.fetch(SchemaID(rawValue: 1)) {
        case .failed(let cause, _, _), .unreachable(let cause): return cause
        case .schema, .unknown, .unusable: return nil
        }
    }

    // MARK: The threads

    private func startFetcher() {
        do throws(SystemError) {
            try NamedThread.detach(name: "schemas") { self.run() }
        } catch {
            // Whoever waits asks again.
            state.withLock { $0.fetchers -= 1 }
        }
    }

    /// How long a thread sleeps at a time, so that it ends soon after a stop.
    private static let sleepMax = Duration.milliseconds(500)

    private func run() {
        var client = RegistryClient(settings, preferred: state.withLock { $0.preferred })
        while true {
            switch turn() {
            case .end: return
            case .wait(let until):
                NamedThread.sleep(min(until - Self.now(), Self.sleepMax))
                state.withLock { $0.isWatched = false }
            case .fetch(let schema):
                let outcome = client.fetch(schema)
                let preferred = client.preferred
                state.withLock { state in
                    state.preferred = preferred
                    state.counts.count(outcome)
                    state.book.ended(schema, outcome, now: Self.now())
                }
                changed()
            }
        }
    }

    /// What the calling fetcher is to do. It starts another one if there is more.
    private func turn() -> SchemaBook.Turn {
        let (turn, needsFetcher) = state.withLock { state in
            let now = Self.now()
            let turn = state.turn(now)
            if turn == .end { state.fetchers -= 1 }
            return (turn, turn != .end && state.addsFetcher(settings, now))
        }
        if needsFetcher { startFetcher() }
        return turn
    }

    private static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
    }
}

extension SchemaSource.State {
    fileprivate mutating func turn(_ now: MonotonicTime) -> SchemaBook.Turn {
        if isStopped { return .end }
        let turn = book.turn(now: now)
        guard case .wait = turn else { return turn }
        if isWatched { return .end }
        isWatched = true
        return turn
    }

    /// Counts one more fetcher, if there may be one and it has something to do.
    fileprivate mutating func addsFetcher(
        _ settings: RegistrySettings, _ now: MonotonicTime, must: Bool = false
    ) -> Bool {
        guard !isStopped, fetchers < settings.fetchersMax, must || book.isDue(now: now) else {
            return false
        }
        fetchers += 1
        return true
    }
}

extension SchemaSource.Counts {
    fileprivate mutating func count(_ outcome: SchemaBook.Outcome) {
        switch outcome {
        case .schema: fetched += 1
        case .unknown: unknown += 1
        case .unusable: unusable += 1
        case .failed: failed += 1
        case .unreachable: unreachable += 1
        }
    }
}
