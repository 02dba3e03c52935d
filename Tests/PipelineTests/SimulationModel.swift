// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// A simple model of what one worker owes: a list of all pairs of event and token, with which the
/// pipeline, for all its coalescing, must agree.
struct SimulationModel {
    private(set) var debts: [Debt] = []
    private var rows: [SimulatedToken: [SimulatedRow]] = [:]
    /// What is shown by each registration, and its place in the log.
    private var registrations: [[UInt8]: (rows: [SimulatedRow], number: Int)] = [:]
    private var registeredAt: [SimulatedToken: WallTime] = [:]
    /// When a token was last shown by nobody any more, be it back since or not.
    private(set) var unregisteredAt: [SimulatedToken: MonotonicTime] = [:]
    private var suppressions: [SimulatedToken: WallTime] = [:]
    /// When a token was last suppressed, of those that are not any more.
    private(set) var unsuppressedAt: [SimulatedToken: MonotonicTime] = [:]
    /// When a token last ceased to show the subject of a payload of a group, be it back since or not.
    private var unshownAt: [TokenGroup: MonotonicTime] = [:]
    private var recent: [ReadEvent] = []
    /// Pushes with a payload: a token that has a newer one is owed no older one.
    private var accepted: [Flight] = []
    private let registrationGrace: Duration

    init(settings: PipelineSettings) {
        registrationGrace = settings.registrationGrace
    }

    func isRegistered(_ token: SimulatedToken) -> Bool { registeredAt[token] != nil }
    func registrationTime(_ token: SimulatedToken) -> WallTime? { registeredAt[token] }

    func isSuppressed(_ token: SimulatedToken) -> Bool {
        guard let suppression = suppressions[token], let registered = registeredAt[token] else {
            return false
        }
        return suppression >= registered
    }

    private func shows(_ token: SimulatedToken, _ event: SimulatedEvent) -> Bool {
        rows[token]?.contains { event.matches($0) } == true
    }

    /// Whether the token may be sent a payload of this event: whoever has the phone shows its subject.
    func isShown(_ event: SimulatedEvent, to token: SimulatedToken) -> Bool {
        rows[token]?.contains { $0.subject == event.subject } == true
    }

    /// When the token last ceased to show a subject of which there were payloads of this group.
    func unshown(_ token: SimulatedToken, group: String) -> MonotonicTime? {
        unshownAt[TokenGroup(token: token, group: group)]
    }

    private struct TokenGroup: Hashable {
        let token: SimulatedToken
        let group: String
    }

    /// How many tokens are on the lists of an event, each counted in each list and registration that
    /// has it, and those included that its filters leave out.
    func tokens(askedBy event: SimulatedEvent) -> Int {
        registrations.values.reduce(0) { sum, registration in
            let lists: [[SimulatedRow]]
            if let subject = event.subject {
                lists = [registration.rows.filter { $0.subject == subject }]
            } else {
                lists = event.kinds.map { kind in
                    registration.rows.filter { $0.kind == kind && $0.token.tokenClass != .device }
                }
            }
            // A list of kinds has a token once, that of a subject once for each kind.
            return lists.reduce(sum) { sum, rows in sum + Set(rows.map(Entry.init)).count }
        }
    }

    private struct Entry: Hashable {
        let token: SimulatedToken
        let kind: String?

        init(_ row: SimulatedRow) { (token, kind) = (row.token, row.kind) }
    }

    /// Whether the event is owed to a token that has registered since the owner before had read so
    /// many registrations.
    func isOwedToNewcomers(_ event: SimulatedEvent, known: Int) -> Bool {
        registrations.values.contains { registration in
            registration.number >= known
                && registration.rows.contains { event.matches($0) && !isSuppressed($0.token) }
        }
    }

    func isShown(_ subject: String) -> Bool {
        registrations.values.contains { $0.rows.contains { $0.subject == subject } }
    }

    // MARK: What makes debts

    /// - Parameter known: how many registrations the owner had read under which the event has ended;
    ///   nil if it has not ended.
    /// - Parameter place: how far it had come then; nil if to the end.
    /// - Parameter isOwedHere: whether the row's token was not left to the readers of shards.
    mutating func read(
        _ event: ReadEvent, known: Int? = nil, progress: FanOutProgress? = nil,
        isOwedHere: (SimulatedRow) -> Bool = { _ in true }
    ) {
        guard event.deadline > event.readAt else { return }
        recent.append(event)
        var owed: Set<SimulatedToken> = []
        for registration in registrations.values {
            let isNew = registration.number >= known ?? 0
            for row in registration.rows where event.event.matches(row) && isOwedHere(row) {
                let isAhead = progress.map { !row.token.isBehind($0) } ?? false
                if isNew || isAhead { owed.insert(row.token) }
            }
        }
        for token in owed where !isSuppressed(token) {
            debts.append(Debt(read: event, token: token))
        }
    }

    /// - Parameter ticket: of the dead letter; the event ends with its acknowledgement. Nil if that is
    ///   not written yet.
    mutating func unreadable(_ event: ReadEvent, ticket: UInt64?) {
        var debt = Debt(read: event, token: nil, isBound: true)
        if let ticket { debt.tickets = [ticket] } else { debt.isUnwritten = true }
        debts.append(debt)
    }

    /// The event's offset waits for the record of a shard.
    mutating func split(_ event: ReadEvent, ticket: UInt64) {
        debts.append(Debt(read: event, token: nil, tickets: [ticket], isBound: true))
    }

    /// Kafka did not take the shard of this ticket: its part of the tokens is owed here.
    mutating func tookBack(_ shard: ReadEvent, ticket: UInt64) {
        guard debts.contains(where: { $0.tickets.contains(ticket) }) else { return }
        acknowledged(ticket)
        guard shard.deadline > shard.readAt else { return }
        for (token, rows) in rows where !isSuppressed(token) {
            guard rows.contains(where: shard.event.matches) else { continue }
            debts.append(Debt(read: shard, token: token))
        }
    }

    /// - Parameters:
    ///   - payloads: the events with a payload that there have been.
    ///   - isDropped: whether an operator drops the subject by now.
    mutating func apply(
        _ record: SimulatedTableRecord, payloads: some Sequence<SimulatedEvent>, now: Now,
        isDropped: (String?) -> Bool
    ) {
        var shown: [SimulatedRow] = []
        var time = WallTime(milliseconds: 0)
        switch record.meaning {
        case .registered(let rows, let at): (shown, time) = (rows, at)
        case .unregistered: break
        case .unreadable, .suppression: return
        }
        recent.removeAll { now.monotonic - $0.readAt >= registrationGrace }
        var owedBefore: Set<SimulatedToken> = []
        var pairsBefore: Set<[Int]> = []
        var numbers: [SimulatedToken: Int] = [:]
        for row in shown where numbers[row.token] == nil { numbers[row.token] = numbers.count }
        for (token, number) in numbers where !isSuppressed(token) {
            owedBefore.insert(token)
            for (index, read) in recent.enumerated() where shows(token, read.event) {
                pairsBefore.insert([number, index])
            }
        }
        for token in numbers.keys {
            if isSuppressed(token) { unsuppressedAt[token] = now.monotonic }
            registeredAt[token] = registeredAt[token].map { max($0, time) } ?? time
        }
        registrations[record.key] = (shown, Int(record.offset))
        let before = rows
        rows = [:]
        for row in registrations.values.flatMap(\.rows) { rows[row.token, default: []].append(row) }
        endUnshown(since: before, payloads: payloads, now: now)
        for token in Array(registeredAt.keys) where rows[token] == nil {
            registeredAt[token] = nil
            unregisteredAt[token] = now.monotonic
        }
        for (token, number) in numbers where !isSuppressed(token) {
            let own = shown.filter { $0.token == token }
            for (index, read) in recent.enumerated()
            where read.deadline > now.monotonic && own.contains(where: read.event.matches)
                && !isDropped(read.event.subject)
            {
                if owedBefore.contains(token), pairsBefore.contains([number, index]) { continue }
                let debt = Debt(read: read, token: token)
                if accepted.contains(where: { isNewer($0, than: debt) }) { continue }
                debts.append(debt)
            }
        }
        forgive(now: now)
    }

    // MARK: What ends them

    /// What a token shows no more, it is not sent; nor what such a payload has replaced.
    private mutating func endUnshown(
        since before: [SimulatedToken: [SimulatedRow]], payloads: some Sequence<SimulatedEvent>,
        now: Now
    ) {
        for (token, shown) in before {
            let left = Set((rows[token] ?? []).map(\.subject))
            let gone = Set(shown.map(\.subject)).subtracting(left)
            guard !gone.isEmpty else { continue }
            for event in payloads where event.subject.map(gone.contains) ?? false {
                unshownAt[TokenGroup(token: token, group: event.group)] = now.monotonic
                notTold(token, group: event.group) { _ in true }
            }
        }
    }

    mutating func learned(_ token: SimulatedToken, suppression: WallTime?, now: Now) {
        if isSuppressed(token) { unsuppressedAt[token] = now.monotonic }
        if let suppression {
            suppressions[token] = max(suppressions[token] ?? suppression, suppression)
        } else {
            suppressions[token] = nil
        }
        forgive(now: now)
    }

    /// Ends what need not be sent any more: expired, suppressed, or not shown any longer.
    mutating func forgive(now: Now) {
        debts = debts.filter { debt in
            guard !debt.isBound, let token = debt.token else { return true }
            return debt.read.deadline > now.monotonic && !isSuppressed(token)
                && shows(token, debt.read.event)
        }
    }

    /// Whether this push told the token of that event: handed over after the event was read, with
    /// nothing older than what the event says.
    private func answers(_ flight: Flight, _ debt: Debt) -> Bool {
        guard debt.token == flight.token, debt.read.sequence < flight.sequence else {
            return false
        }
        guard let payload = flight.payload else { return debt.read.event.payload == nil }
        if payload.event.serial == debt.read.event.serial { return true }
        guard payload.event.group == debt.read.event.group else { return false }
        return flight.payloadAt > debt.read.stamp
            || flight.payloadAt == debt.read.stamp && payload.sequence > debt.read.sequence
    }

    /// Whether this push has brought the token a payload that replaces the event's.
    private func isNewer(_ flight: Flight, than debt: Debt) -> Bool {
        flight.payload?.event.serial != debt.read.event.serial && answers(flight, debt)
    }

    /// Accepted, or dead.
    mutating func ended(_ flight: Flight) {
        debts = debts.filter { !answers(flight, $0) }
        if flight.payload != nil { accepted.append(flight) }
    }

    /// What a push would have told its token is not owed any more: an operator has dropped it, or
    /// a letter that was written before tells of its failure.
    /// - Parameter group: of the push; nil for whatever the token was to be told.
    mutating func notTold(_ token: SimulatedToken, group: String?, holding: Holding) {
        debts.removeAll { debt in
            !debt.isBound && debt.token == token
                && debt.read.event.group == group ?? debt.read.event.group
                && holding(debt.read)
        }
    }

    /// An operator has ended the fan-out of these events.
    mutating func notTold(_ isForgiven: Holding) {
        debts.removeAll { !$0.isBound && $0.token != nil && isForgiven($0.read) }
    }

    /// Says of an event whether the ticket in question keeps its offset from being stored.
    typealias Holding = (ReadEvent) -> Bool

    /// Rejected: the debts it answers for wait for the record of this ticket, or for a letter that is
    /// not written yet.
    /// - Parameter isAhead: an event may not have come to the token yet, so that its offset does not
    ///   wait for this push's record.
    mutating func rejected(
        _ flight: Flight, ticket: UInt64?, isAhead: Bool, holding: Holding = { _ in false }
    ) {
        for index in debts.indices where !debts[index].isBound && answers(flight, debts[index]) {
            if let ticket {
                debts[index].tickets.insert(ticket)
            } else {
                debts[index].isUnwritten = true
            }
            debts[index].isBound = !isAhead || holding(debts[index].read)
        }
    }

    /// A dead letter names these tokens, in hexadecimal.
    mutating func written(letter: String, ticket: UInt64, holding: Holding) {
        for index in debts.indices where debts[index].isUnwritten {
            guard let token = debts[index].token, letter.contains(token.nameInLetters)
            else { continue }
            // Two letters may name one token; the offset waits for its own.
            let holds = holding(debts[index].read)
            guard holds || !debts[index].isBound else { continue }
            debts[index].tickets.insert(ticket)
            // It may be another push's letter that names the token: then its own is still to come.
            debts[index].isUnwritten = !holds
            debts[index].isBound = holds
        }
    }

    /// A letter for many failures names nobody; it holds what it tells of.
    mutating func written(mergedLetter ticket: UInt64, holding: Holding) {
        for index in debts.indices where debts[index].isUnwritten && holding(debts[index].read) {
            debts[index].tickets.insert(ticket)
            debts[index].isUnwritten = false
            debts[index].isBound = true
        }
    }

    /// A record of `deferred` promises the token a push. By contract that ends every debt whose event
    /// was read before and to which this push will be an answer, whether or not its fan-out has come by.
    mutating func deferred(
        _ token: SimulatedToken, ticket: UInt64, answers: (ReadEvent) -> Bool, holding: Holding
    ) {
        for index in debts.indices
        where !debts[index].isBound && debts[index].token == token && answers(debts[index].read) {
            debts[index].tickets.insert(ticket)
            debts[index].isBound = holding(debts[index].read)
        }
    }

    /// A push without a payload was left to a row of `deferred`, which owes this from now on.
    mutating func joined(_ token: SimulatedToken, holding: Holding) -> [Debt] {
        var (joined, left): ([Debt], [Debt]) = ([], [])
        for debt in debts {
            if !debt.isBound, debt.token == token, debt.read.event.payload == nil,
                holding(debt.read)
            {
                joined.append(debt)
            } else {
                left.append(debt)
            }
        }
        debts = left
        return joined
    }

    /// What waits for this ticket; it does not any more.
    mutating func take(_ ticket: UInt64) -> [Debt] {
        defer { acknowledged(ticket) }
        return debts.filter { $0.tickets.contains(ticket) }
    }

    /// A later record stands for these too.
    mutating func pass(_ ticket: UInt64, to later: UInt64) {
        for index in debts.indices where debts[index].tickets.remove(ticket) != nil {
            debts[index].tickets.insert(later)
        }
    }

    /// A letter that is not written yet takes the place of the record.
    mutating func unwrite(_ ticket: UInt64) {
        for index in debts.indices where debts[index].tickets.remove(ticket) != nil {
            debts[index].isUnwritten = true
        }
    }

    mutating func acknowledged(_ ticket: UInt64) {
        debts.removeAll { $0.tickets.contains(ticket) }
    }

    /// The partition is another worker's: it reads again whatever is still owed.
    mutating func unassigned(partition: Int) {
        debts.removeAll { $0.read.partition == partition }
        recent.removeAll { $0.partition == partition }
    }

    /// Whether the event at this offset is owed to a token that it is said to have come through.
    func owes(partition: Int, _ progress: CommitNote.SpreadEvent) -> Bool {
        debts.contains {
            $0.read.partition == partition && $0.read.offset == progress.offset
                && $0.token?.isBehind(progress.progress) ?? false
        }
    }

    /// A debt that this stored offset would lose.
    func lost(partition: Int, stored: Int64) -> Debt? {
        debts.first { $0.read.partition == partition && $0.read.offset < stored }
    }
}
