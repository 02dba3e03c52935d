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
/// the order of the log. A replica that has lost a partition without knowing it can write a record
/// all the same; the owner, which follows its partitions, sees by `Ownership` that it does not stand,
/// and writes the newer one, or its removal, again.
package struct RegistrationArbiter {
    package typealias RequestID = UInt64
    package typealias Ticket = UInt64

    /// A write of one handler's registration.
    package struct Put: Sendable {
        package var key: InstallationKey
        package var handler: String
        package var tokenClass: RegistrationClass
        /// nil writes after whatever is there.
        package var sequence: Int64?
        /// As `RegistrationEncoder.targets` writes them.
        package var targets: [UInt8]
        /// As `RegistrationSummary.content`.
        package var content: UInt64

        package init(
            key: InstallationKey, handler: String, tokenClass: RegistrationClass,
            sequence: Int64?, targets: [RegistrationDraft.Target]
        ) {
            self.key = key
            self.handler = handler
            self.tokenClass = tokenClass
            self.sequence = sequence
            self.targets = RegistrationEncoder.targets(targets)
            content = RegistrationSummary.content(ofTargets: self.targets)
        }
    }

    package struct Removal: Sendable {
        package var key: InstallationKey
        package var handler: String
        /// Removes only what was written with a sequence below; nil removes whatever is there.
        package var below: Int64?
        /// Removes only a handler of this class; nil removes one of any.
        package var tokenClass: RegistrationClass?
        /// Writes nothing where nothing is known to be.
        package var isOnlyIfKnown: Bool

        package init(
            key: InstallationKey, handler: String, below: Int64? = nil,
            tokenClass: RegistrationClass? = nil, isOnlyIfKnown: Bool = false
        ) {
            self.isOnlyIfKnown = isOnlyIfKnown
            self.key = key
            self.handler = handler
            self.below = below
            self.tokenClass = tokenClass
        }
    }

    package enum Answer: Hashable, Sendable {
        /// - Parameter isRetry: the same was written before, so nothing was written now.
        case accepted(sequence: Int64, registeredAt: WallTime?, isRetry: Bool)
        case removed
        case stale(stored: Int64)
        case otherClass(RegistrationClass)
        /// The installation is for another key until then.
        case claimed(until: WallTime)
        case tooManyHandlers
        /// Another replica has the partition, or will have.
        case notOwner
        /// More writes are under way than may be.
        case busy
        /// Kafka has not acknowledged the write; it may be in the log all the same.
        case unacknowledged
    }

    package enum Action: Sendable {
        case write(RegistrationWrite)
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
        /// nil if no registrar wrote it, or one that does not say since when it owns the partition.
        package var owner: Ownership?
        package var order: ClientOrder
        package var isOfRegistrar: Bool

        package init(
            partition: Int32, offset: Int64, key: InstallationKey, handler: String,
            summary: RegistrationSummary?, owner: Ownership?, order: ClientOrder = .none,
            isOfRegistrar: Bool = false
        ) {
            self.isOfRegistrar = isOfRegistrar
            self.partition = partition
            self.offset = offset
            self.key = key
            self.handler = handler
            self.summary = summary
            self.owner = owner
            self.order = order
        }
    }

    private struct Partition {
        /// The end that it had when it was assigned, or of what was read since, if that is farther.
        var end: Int64
        /// nil until it was read to its end.
        var ownership: Ownership?
        var table = RegistrationTable()
        var isOwned = false
        var isRevoking = false
        var underWay = 0
        var removals = RemovalMemory<Name>()
        /// The handlers whose newest record is not the last in the log, with the offset of the older one
        /// that is.
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
        var order: ClientOrder
        var registeredAt: WallTime?
        var requests: [(id: RequestID, isRetry: Bool)]
        /// The assignment it was begun under.
        var epoch: UInt64
        var owner: Ownership
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
    /// How many records of former owners were written over.
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
    /// Whether a partition has something that was imported, or may have it, since it is not read yet.
    package var hasImports: Bool {
        handlers.imports > 0 || partitions.values.contains { !$0.state.isOwned }
    }
    package var bytes: Int { partitions.values.reduce(0) { $0 + $1.state.table.bytes } }

    package func owns(_ partition: Int32) -> Bool {
        partitions[partition]?.state.isOwned == true
    }

    // MARK: Partitions

    /// The group has given this partition to the replica; its records follow from the first on.
    ///
    /// - Parameter logEnd: the end that it has now.
    package mutating func assigned(_ partition: Int32, logEnd: Int64) {
        drop(partition)
        lastEpoch += 1
        partitions[partition] = (lastEpoch, Partition(end: logEnd))
    }

    /// The partition was read to the end that it had after it was assigned.
    package mutating func caughtUp(_ partition: Int32, now: WallTime) {
        guard let state = partitions[partition]?.state, !state.isRevoking, !state.isOwned else {
            return
        }
        partitions[partition]!.state.isOwned = true
        partitions[partition]!.state.ownership = Ownership(since: state.end, at: now)
        for name in state.overtaken.keys {
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
        guard let end = partitions[record.partition]?.state.end else { return }
        partitions[record.partition]!.state.end = max(end, record.offset + 1)
        outdate(record)
        remember(
            record.summary, of: name(record.key, record.handler), record.key, in: record.partition,
            RecordStanding(offset: record.offset, owner: owner(of: record), order: record.order))
    }

    /// A record that says it is a later owner's, while this one owns the partition: its writer's clock is
    /// ahead, or somebody else wrote it. It stands, but what this owner writes from here on was asked for
    /// with that record read, and must stand over it: otherwise each would be written again without end.
    private mutating func outdate(_ record: Record) {
        guard let ownership = partitions[record.partition]?.state.ownership,
            let other = record.owner, other > ownership, record.offset >= ownership.since
        else { return }
        partitions[record.partition]!.state.ownership = Ownership(
            since: record.offset + 1, seconds: max(ownership.seconds, other.seconds))
    }

    /// A registrar of a version before says nothing of its ownership. What another one writes while this
    /// one owns the partition, it writes without knowing that it has lost it.
    private func owner(of record: Record) -> Ownership? {
        guard record.owner == nil, record.isOfRegistrar,
            let since = partitions[record.partition]?.state.ownership?.since, record.offset >= since
        else { return record.owner }
        return .unknownFormer
    }

    /// Remembers a record that is in the log, whether it came by there or was acknowledged. The two
    /// may come in either order.
    private mutating func remember(
        _ summary: RegistrationSummary?, of name: Name, _ key: InstallationKey,
        in partition: Int32, _ standing: RecordStanding
    ) {
        guard let newest = newest(of: name, in: partition) else {
            return apply(summary, of: name, in: partition, standing)
        }
        guard standing.offset != newest.offset else { return }
        let isLater = standing.offset > newest.offset
        guard standing.prevails(over: newest) else {
            if isLater { overtaken(name, key, by: standing.offset, in: partition) }
            return
        }
        apply(summary, of: name, in: partition, standing)
        if !isLater {
            overtaken(name, key, by: newest.offset, in: partition)
        } else if let older = partitions[partition]?.state.overtaken[name],
            older.by < standing.offset
        {
            partitions[partition]!.state.overtaken[name] = nil
        }
    }

    private func newest(of name: Name, in partition: Int32) -> RecordStanding? {
        row(name, in: partition)?.standing ?? partitions[partition]?.state.removals[name]
    }

    /// Notes that an older record follows the newest one in the log, and has that written again.
    private mutating func overtaken(
        _ name: Name, _ key: InstallationKey, by offset: Int64, in partition: Int32
    ) {
        let before = partitions[partition]!.state.overtaken[name]?.by ?? offset
        partitions[partition]!.state.overtaken[name] = (key, max(before, offset))
        askForNewest(of: name, in: partition)
    }

    /// If a write is under way, it is asked for when that has failed. A removal needs no reading.
    private mutating func askForNewest(of name: Name, in partition: Int32) {
        guard owns(partition), pending[name] == nil,
            let older = partitions[partition]?.state.overtaken[name]
        else { return }
        if let row = row(name, in: partition) {
            actions.append(
                .writeAgain(
                    older.key, handler: name.handler, partition: partition,
                    offset: row.standing.offset))
        } else if let removal = partitions[partition]?.state.removals[name] {
            writtenAgain += 1
            write(
                nil, of: name, older.key, in: partition, order: removal.order, value: nil,
                registeredAt: nil, for: nil)
        }
    }

    private mutating func apply(
        _ summary: RegistrationSummary?, of name: Name, in partition: Int32,
        _ standing: RecordStanding
    ) {
        guard let end = partitions[partition]?.state.end else { return }
        guard let summary else {
            if let known = handlers.id(of: name.handler),
                partitions[partition]!.state.table.remove(name.installation, known)
            {
                handlers.release(known)
            }
            partitions[partition]!.state.removals.note(name, standing, readTo: end)
            return
        }
        let handler = handlers.retain(name.handler)
        let isNew = partitions[partition]!.state.table.set(
            RegistrationTable.Row(handler: handler, standing: standing, summary: summary),
            of: name.installation)
        if isNew {
            partitions[partition]!.state.removals.forget(name)
        } else {
            handlers.release(handler)
        }
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
        let summary = RegistrationSummary(
            sequence: sequence, tokenClass: put.tokenClass, content: put.content)
        write(
            summary, of: name, put.key, in: partition,
            order: put.sequence.map(ClientOrder.sequence) ?? .none,
            value: RegistrationEncoder.value(draft, targets: put.targets), registeredAt: now,
            for: request)
    }

    package mutating func claim(
        _ claim: InstallationClaim, in partition: Int32, as request: RequestID, now: WallTime
    ) {
        guard owns(partition) else { return answer(request, .notOwner) }
        let name = self.name(claim.key, InstallationClaim.handler)
        let waiting = pending[name]
        let current = waiting.map(\.summary) ?? row(name, in: partition)?.summary
        if let current, current.content != claim.content, let end = current.sequence,
            now < WallTime(milliseconds: end)
        {
            return answer(request, .claimed(until: WallTime(milliseconds: end)))
        }
        let sequence = max(claim.until.milliseconds, (current?.sequence ?? -1) + 1)
        write(
            RegistrationSummary(sequence: sequence, tokenClass: nil, content: claim.content),
            of: name, claim.key, in: partition, order: .none,
            value: claim.value(sequence, registeredAt: now), registeredAt: now, for: request)
    }

    package mutating func remove(_ removal: Removal, in partition: Int32, as request: RequestID) {
        guard owns(partition) else { return answer(request, .notOwner) }
        let name = self.name(removal.key, removal.handler)
        let waiting = pending[name]
        let order = removal.below.map(ClientOrder.below) ?? .none
        let current = waiting.map(\.summary) ?? row(name, in: partition)?.summary
        if let wanted = removal.tokenClass, let stored = current?.tokenClass, stored != wanted {
            // There is none of this name in that class.
            return answer(request, .removed)
        }
        if current == nil, let waiting, writes[waiting.ticket]!.order == order {
            // A tombstone that is under way must be safe before anybody is told.
            writes[waiting.ticket]!.requests.append((request, true))
            return
        }
        if let below = removal.below, let stored = current?.sequence, stored >= below {
            return answer(request, .stale(stored: stored))
        }
        if removal.isOnlyIfKnown, current == nil, waiting == nil {
            return answer(request, .removed)
        }
        // Also where nothing is, as far as is known: a former owner may have a registration on its way, and
        // one of this owner's that was not acknowledged may be in the log.
        write(
            nil, of: name, removal.key, in: partition, order: order, value: nil, registeredAt: nil,
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
        guard row.standing.offset == offset else { return askForNewest(of: name, in: partition) }
        writtenAgain += 1
        write(
            row.summary, of: name, key, in: partition, order: row.standing.order, value: value,
            registeredAt: nil, for: nil)
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
                    offset: row.standing.offset, summary: row.summary)
            }
        }.sorted { $0.handler < $1.handler }
    }

    /// - Parameter request: who waits for it; nil for what is written again, of which there is no more than
    ///   former owners have written, and which is never given up.
    private mutating func write(
        _ summary: RegistrationSummary?, of name: Name, _ key: InstallationKey,
        in partition: Int32, order: ClientOrder, value: [UInt8]?, registeredAt: WallTime?,
        for request: RequestID?
    ) {
        guard let epoch = partitions[partition]?.epoch,
            let owner = partitions[partition]?.state.ownership
        else {
            preconditionFailure(
                "this replica owns each partition that it writes to")
        }
        if let request, writes.count >= underWayMax { return answer(request, .busy) }
        lastTicket += 1
        let current = row(name, in: partition)
        let isNew = summary != nil && pending[name] == nil && current == nil
        // A tombstone says of what class the handler was, for whoever imports rows.
        let tokenClass = (summary ?? pending[name]?.summary ?? current?.summary)?.tokenClass
        if isNew { partitions[partition]!.state.new[name.installation, default: 0] += 1 }
        writes[lastTicket] = Write(
            name: name, key: key, partition: partition, summary: summary, order: order,
            registeredAt: registeredAt, requests: request.map { [($0, false)] } ?? [],
            epoch: epoch, owner: owner, isNew: isNew)
        pending[name] = Pending(ticket: lastTicket, summary: summary)
        partitions[partition]!.state.underWay += 1
        actions.append(
            .write(
                RegistrationWrite(
                    ticket: lastTicket, partition: partition,
                    key: key.recordKey(handler: name.handler), value: value,
                    tokenClass: tokenClass, writer: writer, owner: owner, order: order)))
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
                remember(
                    write.summary, of: write.name, write.key, in: write.partition,
                    RecordStanding(offset: offset, owner: write.owner, order: write.order))
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
