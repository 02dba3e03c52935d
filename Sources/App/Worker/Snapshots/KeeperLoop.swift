// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Configuration
internal import Delivery
internal import Intake
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import Synchronization

/// The thread of an `IndexKeeper`: reads, and writes the index while nothing is read.
struct KeeperLoop: ~Copyable {
    var pipeline: PushPipeline
    private let plan: WorkerPlan
    private let tables: TableReader
    private var snapshots: SnapshotUse
    private let stop: StopFlag
    private let logger: Logger
    private let epoll: Epoll
    private var cluster: String?
    /// Records that could not be read, and how many of them the log has told.
    private var (unreadable, told) = (0, 0)
    /// What the last snapshot had read.
    private var written: [SnapshotStamp.Table]?
    private var writeAt: MonotonicTime
    private var watchAt: MonotonicTime

    private static let batch = 1000
    private static let watchInterval = Duration.seconds(5)
    /// It never has a push, so any number of slots will do.
    private static let slots = 1024

    init(
        _ plan: WorkerPlan, _ tables: TableReader, _ snapshots: SnapshotUse, stop: StopFlag,
        logger: Logger
    ) throws {
        var settings = plan.pipeline
        settings.slots = Self.slots
        let epoll = try Epoll()
        try epoll.add(tables.wakeDescriptor, for: .read, tag: 0)
        try epoll.add(stop.waker.descriptor, for: .read, tag: 1)
        pipeline = try PushPipeline(
            routing: plan.routing, bindings: [], settings: settings,
            slab: PushSlab(slots: Self.slots))
        self.epoll = epoll
        self.plan = plan
        self.tables = tables
        self.snapshots = snapshots
        self.stop = stop
        self.logger = logger
        cluster = tables.clusterID
        let now = PlannerLoop.clock().monotonic
        // At once when everything is read, and then from time to time.
        (writeAt, watchAt) = (now, now)
        written = snapshots.begunWith?.tables
    }

    /// Returns when it is asked to stop.
    mutating func run() throws {
        while !stop.isRaised {
            let now = PlannerLoop.clock()
            let isBusy = read(now: now) == Self.batch
            if now.monotonic >= watchAt { watch(now: now) }
            if let failure = tables.failure { throw failed(failure) }
            if !isBusy, tables.isCaughtUp {
                let newest = tables.newestTime(topic: WorkerPlan.registrationsTable)
                if let lateness = snapshots.lateness(newest: newest, now: now.wall) {
                    snapshots.store.discard(lateness)
                    throw ServiceFailure.clientFailed("the index was begun too late: \(lateness)")
                }
                snapshots.tailWasRead()
                if now.monotonic >= writeAt { write(now: now) }
            }
            if !isBusy {
                let wait = tables.nextLook.map { max(.zero, $0 - now.monotonic) }
                _ = epoll.wait(timeout: min(.seconds(1), wait ?? .seconds(1)))
                tables.clearWakeUp()
            }
        }
        write(now: PlannerLoop.clock())
    }

    private func failed(_ error: any Error) -> ServiceFailure {
        let isElsewhere = tables.isAnotherLog || tables.isOutsideLog && !tables.isCaughtUp
        if isElsewhere, snapshots.begunWith != nil { snapshots.store.discard("\(error)") }
        return .clientFailed("cannot read the topic of registrations or suppressions: \(error)")
    }

    private mutating func read(now: Now) -> Int {
        tables.poll(now: now, limit: Self.batch) { record in
            let timestamp = WallTime(milliseconds: record.timestampMilliseconds)
            let problem =
                record.topic == WorkerPlan.registrationsTable
                ? pipeline.registrationRecord(
                    TableRecord(
                        key: record.key, value: record.value, timestamp: timestamp,
                        partition: record.partition, offset: record.offset), now: now)
                : pipeline.suppressionRecord(
                    key: record.key, value: record.value, timestamp: timestamp)
            if problem != nil { unreadable += 1 }
        }
    }

    private mutating func watch(now: Now) {
        watchAt = now.monotonic + Self.watchInterval
        tables.watch(now: now)
        for warning in tables.takeWarnings() {
            logger.warning(
                "Kafka's client warns",
                metadata: ["code": "\(warning.code)", "text": "\(warning.text)"])
        }
        if unreadable > told {
            logger.warning(
                "records of registrations or suppressions cannot be read, so the index is without them",
                metadata: ["records": .stringConvertible(unreadable)])
            told = unreadable
        }
    }

    /// Writes the index, if anything was read since the last time.
    private mutating func write(now: Now) {
        writeAt = now.monotonic + plan.snapshotEvery
        // Kafka may have been asked while it did not answer.
        cluster = cluster ?? tables.clusterID
        let stamp: SnapshotStamp
        switch snapshots.stamp(plan, tables, cluster: cluster, now: now) {
        case .failure(let fault): return fault.reason.map(snapshots.store.notWritten) ?? ()
        case .success(let made): stamp = made
        }
        guard stamp.tables != written else { return }
        if snapshots.store.write(&pipeline, stamp, SnapshotStore.Manner()) {
            written = stamp.tables
        }
    }
}

/// Asks a thread to stop, and wakes it.
final class StopFlag: Sendable {
    let waker = Waker()
    private let flag = Atomic(false)

    var isRaised: Bool { flag.load(ordering: .acquiring) }

    func raise() {
        flag.store(true, ordering: .releasing)
        waker.signal()
    }
}
