// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import PushModel
package import RecordSchemas
internal import Synchronization

/// Schemas by their numbers, fetched from a registry by a thread of its own while some are wanted.
///
/// `lookup` never waits for the registry. A decoder keeps what it has made of a schema, so that it asks
/// once for each and not for each record.
package final class SchemaSource: Sendable {
    private struct State {
        var book: SchemaBook
        var counts = Counts()
        /// The instance that answered last, for the thread's next life.
        var preferred = 0
        /// Whether the thread runs.
        var isServed = false
        var isStopped = false
    }

    /// What has come of asking the registry, since the start.
    package struct Counts: Sendable, Equatable {
        package var fetched = 0
        package var unknown = 0
        package var unusable = 0
        package var unreachable = 0

        package init() {}
    }

    /// How it stands with the registry.
    package struct Status: Sendable, Equatable {
        /// How many schemas are kept.
        package var known: Int
        /// How many schemas are waited for.
        package var wanted: Int
        /// Why the registry gives no answer; nil if it does, or nothing was asked.
        package var failure: String?
        /// Since when it gives none.
        package var failingSince: MonotonicTime?
        package var counts: Counts
    }

    private let settings: RegistrySettings
    private let state: Mutex<State>
    /// Is called on the thread when something has come of asking.
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
        let (answer, mustServe) = state.withLock { state in
            let answer = state.book.lookup(schema, now: Self.now())
            let mustServe = state.book.next != nil && !state.isServed && !state.isStopped
            if mustServe { state.isServed = true }
            return (answer, mustServe)
        }
        if mustServe { serve() }
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
        if case .unreachable(let cause, _) = client.fetch(SchemaID(rawValue: 1)) { return cause }
        return nil
    }

    // MARK: The thread

    private func serve() {
        do throws(SystemError) {
            try NamedThread.detach(name: "schemas") { self.run() }
        } catch {
            // Whoever waits asks again.
            state.withLock { $0.isServed = false }
        }
    }

    /// How long the thread sleeps at a time, so that it ends soon after a stop.
    private static let sleepMax = Duration.milliseconds(500)

    private func run() {
        var client = RegistryClient(settings, preferred: state.withLock { $0.preferred })
        while let next = next() {
            let wait = next.at - Self.now()
            guard wait <= .zero else {
                NamedThread.sleep(min(wait, Self.sleepMax))
                continue
            }
            let outcome = client.fetch(next.schema)
            let preferred = client.preferred
            state.withLock { state in
                state.preferred = preferred
                state.counts.count(outcome)
                state.book.ended(next.schema, outcome, now: Self.now())
            }
            changed()
        }
    }

    /// The schema to ask for; nil if the thread is to end.
    private func next() -> (schema: SchemaID, at: MonotonicTime)? {
        state.withLock { state in
            if !state.isStopped, let next = state.book.next { return next }
            state.isServed = false
            return nil
        }
    }

    private static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
    }
}

extension SchemaSource.Counts {
    fileprivate mutating func count(_ outcome: SchemaBook.Outcome) {
        switch outcome {
        case .schema: fetched += 1
        case .unknown: unknown += 1
        case .unusable: unusable += 1
        case .unreachable: unreachable += 1
        }
    }
}
