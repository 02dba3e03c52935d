// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import RecordFormats

/// What the operator's canaries are.
package struct CanarySettings: Sendable, Equatable {
    /// How often one is written.
    package var every: Duration
    package var app: String
    /// What they are about: a subject that one token is registered for.
    package var subject: String
    /// Tells this worker's canaries from those of the others.
    package var worker: UInt64

    package init(every: Duration, app: String, subject: String, worker: UInt64) {
        self.every = every
        self.app = app
        self.subject = subject
        self.worker = worker
    }
}

/// Follows the operator's canaries, events that this worker writes to its own partitions: through
/// Kafka, the index and a pool to APNs. Facts come in; how long none has come through, and where the
/// latest is, can be asked for.
///
/// A canary is known again by its ID, and its push by the position of its event: what another event
/// or another worker's canary has sent to the same token proves nothing.
package struct Canary: Sendable {
    /// Where a canary is.
    package enum Stage: Sendable, Equatable {
        /// The producer has it, and Kafka has not acknowledged it.
        case unacknowledged
        /// Kafka has not taken it.
        case refused(cause: String)
        /// Kafka has it, and it was not read.
        case unread
        /// It was read, and there is no push for it.
        case ended(EventTally.Outcome)
        /// It was read, and no push was made for its token: that is suppressed, or still waits for its
        /// minimum gap.
        case withoutPush
        /// Its push is on its way. What became of the last request, if there was one: a status with
        /// APNs's reason, or why there is none.
        case sent(last: String?)
        /// Its push has ended without a request, or after the last one.
        case unsent(UnsentCause)
        /// APNs has answered 200, or 410 where the token is dead.
        case cameThrough(status: UInt16, after: Duration)
    }

    /// Why a push ended that was about to be sent.
    package enum UnsentCause: Sendable, Equatable {
        case expired, suppressed, superseded, dropped
    }

    /// One of this worker's canaries.
    package struct Turn: Sendable, Equatable {
        package var number: UInt64
        package var partition: Int32
        package var writtenAt: WallTime
        package var stage: Stage
        fileprivate var beganAt: MonotonicTime
        fileprivate var position: RecordPosition?

        package init(
            number: UInt64, partition: Int32, writtenAt: WallTime, beganAt: MonotonicTime,
            stage: Stage = .unacknowledged
        ) {
            self.number = number
            self.partition = partition
            self.writtenAt = writtenAt
            self.stage = stage
            self.beganAt = beganAt
        }
    }

    /// What is to be written.
    package struct Record: Sendable, Equatable {
        package var number: UInt64
        package var partition: Int32
        package var value: [UInt8]
    }

    private let settings: CanarySettings?
    private let app: AppID?
    /// What the IDs of this worker's begin with.
    private let prefix: [UInt8]
    /// The latest, the newest last.
    private var turns: [Turn] = []
    private var numbers: UInt64 = 0
    private var dueAt = MonotonicTime(nanoseconds: .min)
    /// When `next` wants to be asked again: never where no canaries are written.
    private(set) var looksAt: MonotonicTime
    /// Since when canaries are expected of this worker; nil while it has no partition to write to.
    private var expectedSince: MonotonicTime?
    /// When the newest was written that has come through.
    private var provedAt: MonotonicTime?
    package private(set) var lastProof: Turn?
    package private(set) var counts = Counts()
    /// The event that is being read, and how often a push had been made or joined before.
    private var reading: (position: RecordPosition, asked: Int)?
    /// Whether one is being read.
    private(set) var isReading = false
    /// Whether the push of any of them is on its way.
    private(set) var isFollowing = false

    package struct Counts: Sendable, Equatable {
        package var written = 0
        package var cameThrough = 0

        package init(written: Int = 0, cameThrough: Int = 0) {
            self.written = written
            self.cameThrough = cameThrough
        }
    }

    /// How many periods may pass without one that comes through: two have failed then.
    package static let patience = 3
    /// A push lives for two periods, but long enough for clocks that are minutes apart.
    private static let lifeMin: Int64 = 300
    private static let periodsAlive: Int64 = 2
    /// The shortest period is 10 s, so no older canary is on its way.
    private static let turnsMax = 32

    init(_ settings: CanarySettings?, routing: RoutingTable) {
        self.settings = settings
        looksAt = settings == nil ? .distantFuture : MonotonicTime(nanoseconds: .min)
        app = settings.flatMap { routing.app(named: $0.app) }
        prefix =
            settings.map { Array("lamplighter-canary:\(String($0.worker, radix: 16)):".utf8) } ?? []
    }

    var isOn: Bool { settings != nil }

    /// Whether canaries are about this.
    func isAbout(_ subject: some Sequence<UInt8>, of app: AppID) -> Bool {
        app == self.app && settings.map { subject.elementsEqual($0.subject.utf8) } ?? false
    }

    package var latest: Turn? { turns.last }
    var turnCount: Int { turns.count }

    // MARK: They are written

    /// Makes the next canary if it is due.
    ///
    /// - Parameter partitions: those of its topic that are this worker's, in order; they take turns, so
    ///   that each is tried. With none no canary is expected of it. Nil while the group has not said: then
    ///   none can be written, and is missed all the same.
    package mutating func next(partitions: [Int32]?, now: Now) -> Record? {
        guard let settings else { return nil }
        looksAt = now.monotonic + .seconds(1)
        if let partitions, partitions.isEmpty {
            expectedSince = nil
            return nil
        }
        if expectedSince == nil { expectedSince = now.monotonic }
        guard let partitions, now.monotonic >= dueAt, turns.last?.stage != .unacknowledged else {
            return nil
        }
        dueAt = now.monotonic + settings.every
        numbers += 1
        let partition = partitions[Int(numbers % UInt64(partitions.count))]
        turns.append(
            Turn(number: numbers, partition: partition, writtenAt: now.wall, beganAt: now.monotonic)
        )
        if turns.count > Self.turnsMax { turns.removeFirst() }
        counts.written += 1
        return Record(number: numbers, partition: partition, value: value(settings))
    }

    private func value(_ settings: CanarySettings) -> [UInt8] {
        var event = EventDraft()
        event.id = String(decoding: prefix, as: UTF8.self) + "\(numbers)"
        event.app = settings.app
        event.subject = settings.subject
        event.ttlSeconds = max(
            Self.lifeMin, settings.every.components.seconds * Self.periodsAlive)
        return EventEncoder.value(event)
    }

    /// Kafka has acknowledged it, or refused it.
    package mutating func acknowledged(_ number: UInt64, refusal: String?) {
        // It may have been read before it was acknowledged.
        guard let turn = index(of: number), turns[turn].stage == .unacknowledged else { return }
        turns[turn].stage = refusal.map { .refused(cause: $0) } ?? .unread
    }

    private func index(of number: UInt64) -> Int? {
        turns.lastIndex { $0.number == number }
    }

    // MARK: They are read

    /// An event with an ID was read, and its pushes are made next. Without effect if it is none of this
    /// worker's canaries, as it was written.
    ///
    /// - Parameter asked: how often pushes were made or joined so far.
    mutating func read(_ event: Event, at position: RecordPosition, asked: Int) {
        guard let turn = number(of: event).flatMap({ index(of: $0) }),
            event.scope == .subject, isAbout(event.subject, of: event.app),
            turns[turn].partition == position.partition
        else { return }
        // It may be read again after a rebalance, or have been written twice: its push is of the first.
        if turns[turn].hasComeThrough || turns[turn].isSent { return }
        turns[turn].position = position
        reading = (position, asked)
        isReading = true
    }

    /// What came of the event at this position is known. The one that is being read may be another: of
    /// what had ended under an owner before nothing comes.
    ///
    /// - Parameter stage: where it is then, by whether a push was made or joined.
    mutating func readToEnd(
        at position: RecordPosition, asked: Int, _ stage: (_ isAsked: Bool) -> Stage
    ) {
        let read = reading
        reading = nil
        isReading = false
        guard let read, read.position == position,
            let turn = turns.firstIndex(where: { $0.position == position })
        else { return }
        turns[turn].stage = stage(asked != read.asked)
        followPushes()
    }

    private func number(of event: Event) -> UInt64? {
        guard let id = event.id, id.count > prefix.count, id.count <= prefix.count + 20,
            id.starts(with: prefix)
        else { return nil }
        return UInt64(String(decoding: id[prefix.count...], as: UTF8.self))
    }

    private mutating func followPushes() {
        isFollowing = turns.contains { $0.isSent }
    }

    // MARK: APNs answers

    /// The event of the push whose request has ended.
    func turn(at origin: RecordPosition?) -> Int? {
        guard let origin else { return nil }
        // One that reached nobody may have a push all the same: for a token that registered just after.
        return turns.firstIndex { $0.position == origin && !$0.hasComeThrough }
    }

    /// A request for it has ended.
    ///
    /// - Parameter status: nil without an answer.
    mutating func ended(_ turn: Int, status: UInt16?, text: String, now: Now) {
        guard let status, status == 200 || status == 410 else {
            turns[turn].stage = .sent(last: text)
            return
        }
        turns[turn].stage = .cameThrough(
            status: status, after: now.monotonic - turns[turn].beganAt)
        counts.cameThrough += 1
        if provedAt.map({ $0 < turns[turn].beganAt }) ?? true {
            provedAt = turns[turn].beganAt
            lastProof = turns[turn]
        }
        followPushes()
    }

    /// Its push was to be sent, and is not.
    mutating func ended(_ turn: Int, unsent cause: UnsentCause) {
        turns[turn].stage = .unsent(cause)
        followPushes()
    }

    // MARK: What is known

    /// How long ago the newest was written that has come through, or since when one is expected; nil
    /// where none is.
    package func silence(now: Now) -> Duration? {
        guard let expectedSince else { return nil }
        return now.monotonic - max(expectedSince, provedAt ?? expectedSince)
    }
}

extension Canary.Turn {
    fileprivate var hasComeThrough: Bool {
        if case .cameThrough = stage { true } else { false }
    }

    fileprivate var isSent: Bool {
        if case .sent = stage { true } else { false }
    }
}
