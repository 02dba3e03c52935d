// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
package import RecordFormats

/// Decides on the writes of the partitions that this replica owns. It owns a partition once it has
/// read it to the end; until then, and after the group takes it back, it writes nothing to it.
///
/// Facts go in, `takeActions` gives what is to be done. A write is accepted if its sequence is above
/// that of every write of the same handler that was acknowledged or is under way. Since the owner of
/// a partition alone writes to it, and hands it over only when its own writes have ended, that is
/// the order of the log. A replica that has lost a partition without knowing it can write a stale
/// record all the same; the owner, which follows its partitions, then writes the newer one again.
package struct RegistrationDesk {
    package typealias RequestID = UInt64
    package typealias Ticket = UInt64

    /// A write of one handler's registration.
    package struct Put: Sendable {
        package var key: InstallationKey
        package var handler: String
        package var tokenClass: RegistrationClass
        /// nil writes after whatever is there.
        package var sequence: Int64?
        package var targets: [RegistrationDraft.Target]
        /// As `RegistrationSummary.content`.
        package var content: UInt64

        package init(
            key: InstallationKey, handler: String, tokenClass: RegistrationClass,
            sequence: Int64?, targets: [RegistrationDraft.Target], content: UInt64
        ) {
            self.key = key
            self.handler = handler
            self.tokenClass = tokenClass
            self.sequence = sequence
            self.targets = targets
            self.content = content
        }
    }

    package struct Removal: Sendable {
        package var key: InstallationKey
        package var handler: String
        /// Removes only what was written with a sequence below; nil removes whatever is there.
        package var below: Int64?

        package init(key: InstallationKey, handler: String, below: Int64? = nil) {
            self.key = key
            self.handler = handler
            self.below = below
        }
    }

    package enum Answer: Hashable, Sendable {
        /// - Parameter isRetry: the same was written before, so nothing was written now.
        case accepted(sequence: Int64, registeredAt: WallTime?, isRetry: Bool)
        case removed
        case stale(stored: Int64)
        case otherClass(RegistrationClass)
        case tooManyHandlers
        /// Another replica has the partition, or will have.
        case notOwner
        /// More writes are under way than may be.
        case busy
        /// Kafka has not acknowledged the write; it may be in the log all the same.
        case unacknowledged
    }

    package enum Action: Sendable {
        /// The key and the value are of a registration's record; without a value it is a tombstone.
        /// The class goes beside the value, which says none if it has no targets.
        case write(
            Ticket, partition: Int32, key: [UInt8], value: [UInt8]?, RegistrationClass?)
        case answer(RequestID, Answer)
        /// Another replica, which does not own the partition any more, has written an older record
        /// after the newer one at `offset`: read that and write it again.
        case writeAgain(InstallationKey, handler: String, partition: Int32, offset: Int64)
        /// Nothing of this partition is under way any more; the group may have it back.
        case released(Int32)
    }

    /// A record of the topic.
    package struct Record {
        package var partition: Int32
        package var offset: Int64
        package var key: InstallationKey
        package var handler: String
        /// nil for a tombstone.
        package var summary: RegistrationSummary?
        /// The replica that wrote it; nil if it was no registrar.
        package var writer: UInt64?

        package init(
            partition: Int32, offset: Int64, key: InstallationKey, handler: String,
            summary: RegistrationSummary?, writer: UInt64?
        ) {
            self.partition = partition
            self.offset = offset
            self.key = key
            self.handler = handler
            self.summary = summary
            self.writer = writer
        }
    }

    private struct Partition {
        var table = RegistrationTable()
        var isOwned = false
        var isRevoking = false
        var underWay = 0
        /// Where handlers were removed by own tombstones, until those come by in the log: what comes
        /// before them does not count any more.
        var removed: [Name: Int64] = [:]
        /// The handlers whose newest registration is not the last in the log, with the offset of the
        /// older one that is.
        var overtaken: [Name: (key: InstallationKey, by: Int64)] = [:]
        /// The writes under way that are the first of their handlers, by installation.
        var new: [StableHash.Value: Int] = [:]
    }

    private struct Name: Hashable {
        var installation: StableHash.Value
        var handler: String
    }

    /// The newest write of a handler that is under way.
    private struct Pending {
        var ticket: Ticket
        /// nil for a tombstone.
        var summary: RegistrationSummary?
    }

    private struct Write {
        var name: Name
        var key: InstallationKey
        var partition: Int32
        var summary: RegistrationSummary?
        var registeredAt: WallTime?
        var requests: [(id: RequestID, isRetry: Bool)]
        /// The assignment it was begun under.
        var epoch: UInt64
        /// Whether nothing was stored or under way of its handler.
        var isNew: Bool
    }

    /// The name of this replica in the records that it writes.
    package let writer: UInt64
    private let seed: UInt64
    private let underWayMax: Int
    private let handlersMax: Int
    private var partitions: [Int32: (epoch: UInt64, state: Partition)] = [:]
    private(set) var handlers = HandlerNameTable()
    private var pending: [Name: Pending] = [:]
    private var writes: [Ticket: Write] = [:]
    private var lastTicket: Ticket = 0
    private var lastEpoch: UInt64 = 0
    private var actions: [Action] = []
    /// How many stale records of other replicas were written over.
    package private(set) var writtenAgain: UInt64 = 0

    /// - Parameters:
    ///   - seed: random, so that nobody can choose installations that collide.
    ///   - underWayMax: how many writes may wait for Kafka.
    ///   - handlersMax: how many handlers an installation may have in each partition.
    package init(
        writer: UInt64, seed: UInt64, underWayMax: Int = 20_000,
        handlersMax: Int = RegistrarLimits().handlersMax
    ) {
        self.writer = writer
        self.seed = seed
        self.underWayMax = underWayMax
        self.handlersMax = handlersMax
    }

    package mutating func takeActions() -> [Action] {
        defer { actions.removeAll(keepingCapacity: true) }
        return actions
    }

    package var underWay: Int { writes.count }
    package var ownedPartitions: [Int32] {
        partitions.filter(\.value.state.isOwned).keys.sorted()
    }
    package var registrations: Int { partitions.values.reduce(0) { $0 + $1.state.table.count } }
    package var bytes: Int { partitions.values.reduce(0) { $0 + $1.state.table.bytes } }

    package func owns(_ partition: Int32) -> Bool {
        partitions[partition]?.state.isOwned == true
    }

    // MARK: Partitions

    /// The group has given this partition to the replica; its records follow from the first on.
    package mutating func assigned(_ partition: Int32) {
        drop(partition)
        lastEpoch += 1
        partitions[partition] = (lastEpoch, Partition())
    }

    /// The partition was read to the end that it had after it was assigned.
    package mutating func caughtUp(_ partition: Int32) {
        guard partitions[partition]?.state.isRevoking == false else { return }
        partitions[partition]?.state.isOwned = true
        for name in (partitions[partition]?.state.overtaken ?? [:]).keys {
            askForNewest(of: name, in: partition)
        }
    }

    /// The group wants the partition back, and waits until it is released.
    package mutating func revoking(_ partition: Int32) {
        guard partitions[partition] != nil else { return actions.append(.released(partition)) }
        partitions[partition]!.state.isOwned = false
        partitions[partition]!.state.isRevoking = true
        releaseIfIdle(partition)
    }

    /// Another replica has the partition already.
    package mutating func lost(_ partition: Int32) { drop(partition) }

    private mutating func drop(_ partition: Int32) {
        guard let state = partitions.removeValue(forKey: partition)?.state else { return }
        state.table.forEachHandler { handlers.release($0) }
    }

    private mutating func releaseIfIdle(_ partition: Int32) {
        guard let state = partitions[partition]?.state, state.isRevoking, state.underWay == 0 else {
            return
        }
        drop(partition)
        actions.append(.released(partition))
    }

    // MARK: Records

    /// A record of an assigned partition, in the order of the log.
    package mutating func take(_ record: Record) {
        guard let state = partitions[record.partition]?.state else { return }
        let name = self.name(record.key, record.handler)
        if let removed = state.removed[name] {
            if record.offset >= removed {
                partitions[record.partition]!.state.removed[name] = nil
            }
            if record.offset <= removed { return }
        }
        remember(
            name, record.key, record.summary, at: record.offset, in: record.partition,
            isRegistrars: record.writer != nil)
    }

    /// Remembers a record that is in the log, whether it came by there or was acknowledged. The two
    /// may come in either order.
    private mutating func remember(
        _ name: Name, _ key: InstallationKey, _ summary: RegistrationSummary?, at offset: Int64,
        in partition: Int32, isRegistrars: Bool
    ) {
        let stored = row(name, in: partition)
        if isRegistrars, let stored, let known = stored.summary.sequence,
            let sequence = summary?.sequence, sequence != known
        {
            if sequence < known, offset > stored.offset {
                return overtaken(name, key, by: offset, in: partition)
            }
            if sequence > known, offset < stored.offset {
                apply(name, summary, at: offset, in: partition)
                return overtaken(name, key, by: stored.offset, in: partition)
            }
        }
        if let stored, offset <= stored.offset { return }
        apply(name, summary, at: offset, in: partition)
        if let older = partitions[partition]?.state.overtaken[name], older.by < offset {
            partitions[partition]!.state.overtaken[name] = nil
        }
    }

    /// Notes that an older registration follows the newest one in the log, and has that written
    /// again.
    private mutating func overtaken(
        _ name: Name, _ key: InstallationKey, by offset: Int64, in partition: Int32
    ) {
        partitions[partition]!.state.overtaken[name] = (key, offset)
        askForNewest(of: name, in: partition)
    }

    /// If a write is under way, it is asked for when that has failed.
    private mutating func askForNewest(of name: Name, in partition: Int32) {
        guard pending[name] == nil, let row = row(name, in: partition),
            let older = partitions[partition]?.state.overtaken[name]
        else { return }
        actions.append(
            .writeAgain(
                older.key, handler: name.handler, partition: partition, offset: row.offset))
    }

    private mutating func apply(
        _ name: Name, _ summary: RegistrationSummary?, at offset: Int64, in partition: Int32
    ) {
        guard partitions[partition] != nil else { return }
        let known = handlers.id(of: name.handler)
        guard let summary else {
            if let known,
                partitions[partition]!.state.table.remove(name.installation, known)
            {
                handlers.release(known)
            }
            return
        }
        let handler = handlers.retain(name.handler)
        let isNew = partitions[partition]!.state.table.set(
            RegistrationTable.Row(handler: handler, offset: offset, summary: summary),
            of: name.installation)
        if !isNew { handlers.release(handler) }
    }

    // MARK: Requests

    package mutating func put(_ put: Put, in partition: Int32, as request: RequestID, now: WallTime)
    {
        guard owns(partition) else { return answer(request, .notOwner) }
        let name = self.name(put.key, put.handler)
        let current = pending[name].map(\.summary) ?? row(name, in: partition)?.summary
        if let other = current?.tokenClass, other != put.tokenClass {
            return answer(request, .otherClass(other))
        }
        let stored = current?.sequence
        let sequence = put.sequence ?? (stored ?? -1) + 1
        if let stored, sequence <= stored {
            guard sequence == stored, put.content == current?.content else {
                return answer(request, .stale(stored: stored))
            }
            if let waiting = pending[name] {
                writes[waiting.ticket]!.requests.append((request, true))
                return
            }
            // What the client sends again is at hand: an older record that is last in the log has to
            // wait for no other reading of it.
            guard partitions[partition]!.state.overtaken[name] != nil else {
                return answer(
                    request, .accepted(sequence: sequence, registeredAt: nil, isRetry: true))
            }
        }
        guard sequence <= Self.sequenceMax else {
            return answer(request, .stale(stored: stored ?? 0))
        }
        if current == nil {
            let state = partitions[partition]!.state
            let count =
                state.table.rows(name.installation).count
                + state.new[name.installation, default: 0]
            guard count < handlersMax else { return answer(request, .tooManyHandlers) }
        }
        var draft = RegistrationDraft(
            environment: put.key.environment, app: put.key.app,
            installation: put.key.installation, handler: put.handler)
        draft.sequence = sequence
        draft.registeredAt = now
        draft.targets = put.targets
        write(
            name, key: put.key, in: partition,
            summary: RegistrationSummary(
                sequence: sequence, tokenClass: put.tokenClass, content: put.content),
            value: RegistrationEncoder.value(draft), registeredAt: now, for: request)
    }

    package mutating func remove(_ removal: Removal, in partition: Int32, as request: RequestID) {
        guard owns(partition) else { return answer(request, .notOwner) }
        let name = self.name(removal.key, removal.handler)
        let waiting = pending[name]
        guard let current = waiting.map(\.summary) ?? row(name, in: partition)?.summary else {
            // A tombstone that is under way must be safe before anybody is told.
            if let waiting {
                writes[waiting.ticket]!.requests.append((request, true))
            } else {
                answer(request, .removed)
            }
            return
        }
        if let below = removal.below, let stored = current.sequence, stored >= below {
            return answer(request, .stale(stored: stored))
        }
        write(
            name, key: removal.key, in: partition, summary: nil, value: nil, registeredAt: nil,
            for: request)
    }

    /// Writes the value at this offset again, which `writeAgain` has asked for, if it is still the
    /// newest.
    package mutating func writeAgain(
        _ key: InstallationKey, handler: String, partition: Int32, offset: Int64, value: [UInt8]
    ) {
        let name = self.name(key, handler)
        guard owns(partition), pending[name] == nil, let row = row(name, in: partition),
            partitions[partition]?.state.overtaken[name] != nil
        else { return }
        guard row.offset == offset else { return askForNewest(of: name, in: partition) }
        writtenAgain += 1
        write(
            name, key: key, in: partition, summary: row.summary, value: value, registeredAt: nil,
            for: nil)
    }

    /// What `writeAgain` has asked for could not be read: it is asked for again, if it is wanted still.
    package mutating func askAgain(_ key: InstallationKey, handler: String, partition: Int32) {
        guard owns(partition) else { return }
        askForNewest(of: name(key, handler), in: partition)
    }

    /// A handler of an installation, in a partition that this replica owns.
    package struct Listed: Hashable, Sendable {
        package var handler: String
        package var partition: Int32
        package var offset: Int64
        package var summary: RegistrationSummary
    }

    /// The handlers of an installation in these partitions; nil if one of them is not owned.
    package func list(_ key: InstallationKey, in wanted: Set<Int32>) -> [Listed]? {
        guard wanted.allSatisfy(owns) else { return nil }
        let installation = hash(key)
        return wanted.flatMap { partition in
            partitions[partition]!.state.table.rows(installation).map { row in
                Listed(
                    handler: handlers.name(of: row.handler), partition: partition,
                    offset: row.offset, summary: row.summary)
            }
        }.sorted { $0.handler < $1.handler }
    }

    private mutating func write(
        _ name: Name, key: InstallationKey, in partition: Int32, summary: RegistrationSummary?,
        value: [UInt8]?, registeredAt: WallTime?, for request: RequestID?
    ) {
        guard writes.count < underWayMax else {
            if let request { answer(request, .busy) }
            return
        }
        lastTicket += 1
        let isNew = summary != nil && pending[name] == nil && row(name, in: partition) == nil
        if isNew { partitions[partition]!.state.new[name.installation, default: 0] += 1 }
        writes[lastTicket] = Write(
            name: name, key: key, partition: partition, summary: summary,
            registeredAt: registeredAt,
            requests: request.map { [($0, false)] } ?? [], epoch: partitions[partition]!.epoch,
            isNew: isNew)
        pending[name] = Pending(ticket: lastTicket, summary: summary)
        partitions[partition]!.state.underWay += 1
        actions.append(
            .write(
                lastTicket, partition: partition, key: key.recordKey(handler: name.handler),
                value: value, summary?.tokenClass))
    }

    private mutating func answer(_ request: RequestID, _ answer: Answer) {
        actions.append(.answer(request, answer))
    }

    // MARK: Kafka's reports

    /// - Parameter offset: where the record was written; nil if it may not have been.
    package mutating func reported(_ ticket: Ticket, offset: Int64?) {
        guard let write = writes.removeValue(forKey: ticket) else { return }
        if pending[write.name]?.ticket == ticket { pending[write.name] = nil }
        let isOurs = partitions[write.partition]?.epoch == write.epoch
        if isOurs {
            partitions[write.partition]!.state.underWay -= 1
            if write.isNew { endNew(write.name.installation, in: write.partition) }
            if let offset {
                if write.summary == nil {
                    partitions[write.partition]!.state.removed[write.name] = offset
                }
                remember(
                    write.name, write.key, write.summary, at: offset, in: write.partition,
                    isRegistrars: true)
            }
            askForNewest(of: write.name, in: write.partition)
        }
        for request in write.requests {
            guard offset != nil else {
                answer(request.id, .unacknowledged)
                continue
            }
            if let sequence = write.summary?.sequence {
                answer(
                    request.id,
                    .accepted(
                        sequence: sequence, registeredAt: write.registeredAt,
                        isRetry: request.isRetry))
            } else {
                answer(request.id, .removed)
            }
        }
        if isOurs { releaseIfIdle(write.partition) }
    }

    private mutating func endNew(_ installation: StableHash.Value, in partition: Int32) {
        let left = partitions[partition]!.state.new[installation, default: 0] - 1
        partitions[partition]!.state.new[installation] = left > 0 ? left : nil
    }

    // MARK: Names

    /// The largest integer that every JSON reader reads exactly.
    package static let sequenceMax: Int64 = (1 << 53) - 1

    /// A number that somebody else has written, as a sequence; nil if it is none, and counts as missing.
    /// Taken as it is, one at the end of its range would keep all later writes out, or overflow.
    package static func sequence(_ number: Int64) -> Int64? {
        (0...sequenceMax).contains(number) ? number : nil
    }

    private func row(_ name: Name, in partition: Int32) -> RegistrationTable.Row? {
        guard let id = handlers.id(of: name.handler) else { return nil }
        return partitions[partition]?.state.table.row(name.installation, id)
    }

    private func name(_ key: InstallationKey, _ handler: String) -> Name {
        Name(installation: hash(key), handler: handler)
    }

    private func hash(_ key: InstallationKey) -> StableHash.Value {
        var hash = StableHash(seed: seed)
        for part in [key.environment.name, key.app, key.installation] {
            var part = part
            part.withUTF8 { hash.combine(UnsafeRawBufferPointer($0)) }
        }
        return hash.finish()
    }
}
