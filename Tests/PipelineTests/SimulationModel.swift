// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What one worker owes, kept in the plainest way: a list of every pair of event and token, which
/// the pipeline, with all its coalescing, must agree with.
struct SimulationModel {
    /// An event as this worker has read it.
    struct ReadEvent {
        let event: SimulatedEvent
        let partition: Int
        let offset: Int64
        let readAt: Now
        /// Counts what this worker reads and hands over.
        let sequence: Int
    }

    enum Ending: Equatable {
        case open
        /// Rejected; the letter that says so is not written yet.
        case unwritten
        /// A dead letter or a verdict says what became of it; Kafka has not acknowledged it yet.
        case written(ticket: UInt64)
    }

    struct Debt {
        let read: ReadEvent
        /// Nil: the record itself, which cannot be read.
        let token: SimulatedToken?
        var ending = Ending.open
        /// Its fan-out may not have come to the token when an earlier push was rejected: then the
        /// event does not wait for that push's letter.
        var mayBeAhead = false
    }

    /// A push that was handed over.
    struct Flight {
        let slot: UInt32
        let token: SimulatedToken
        /// The event whose payload it carries, and when that was read; nil for "look again".
        let payload: (event: SimulatedEvent, sequence: Int)?
        let sequence: Int
        let registeredAt: WallTime
        var dueAt: MonotonicTime
        var answer: SimulatedAnswer
    }

    private(set) var debts: [Debt] = []
    private var rows: [SimulatedToken: [SimulatedRow]] = [:]
    private var registrations: [[UInt8]: [SimulatedRow]] = [:]
    private var registeredAt: [SimulatedToken: WallTime] = [:]
    private var verdicts: [SimulatedToken: WallTime] = [:]
    private var recent: [ReadEvent] = []
    private let settle: Duration

    init(settle: Duration) { self.settle = settle }

    func isRegistered(_ token: SimulatedToken) -> Bool { registeredAt[token] != nil }
    func registrationTime(_ token: SimulatedToken) -> WallTime? { registeredAt[token] }

    func isSuppressed(_ token: SimulatedToken) -> Bool {
        guard let verdict = verdicts[token], let registered = registeredAt[token] else {
            return false
        }
        return verdict >= registered
    }

    private func shows(_ token: SimulatedToken, _ event: SimulatedEvent) -> Bool {
        rows[token]?.contains { event.matches($0) } == true
    }

    // MARK: What makes debts

    mutating func read(_ event: ReadEvent) {
        guard event.event.expiresAt > event.readAt.wall else { return }
        recent.append(event)
        for (token, shown) in rows where shown.contains(where: { event.event.matches($0) }) {
            if !isSuppressed(token) { debts.append(Debt(read: event, token: token)) }
        }
    }

    /// - Parameter ticket: of the dead letter; the event ends with its acknowledgement.
    mutating func unreadable(_ event: ReadEvent, ticket: UInt64) {
        debts.append(Debt(read: event, token: nil, ending: .written(ticket: ticket)))
    }

    mutating func apply(_ record: SimulatedTableRecord, now: Now) {
        var shown: [SimulatedRow] = []
        var time = WallTime(milliseconds: 0)
        switch record.meaning {
        case .registered(let rows, let at): (shown, time) = (rows, at)
        case .unregistered: break
        case .unreadable, .verdict: return
        }
        recent.removeAll { now.monotonic - $0.readAt.monotonic >= settle }
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
            registeredAt[token] = registeredAt[token].map { max($0, time) } ?? time
        }
        registrations[record.key] = shown
        rows = [:]
        for row in registrations.values.joined() { rows[row.token, default: []].append(row) }
        for token in Array(registeredAt.keys) where rows[token] == nil { registeredAt[token] = nil }
        for (token, number) in numbers where !isSuppressed(token) {
            let own = shown.filter { $0.token == token }
            for (index, read) in recent.enumerated()
            where read.event.expiresAt > now.wall && own.contains(where: read.event.matches) {
                if owedBefore.contains(token), pairsBefore.contains([number, index]) { continue }
                debts.append(Debt(read: read, token: token))
            }
        }
        forgive(now: now)
    }

    // MARK: What ends them

    mutating func learned(_ token: SimulatedToken, verdict: WallTime?, now: Now) {
        if let verdict {
            verdicts[token] = max(verdicts[token] ?? verdict, verdict)
        } else {
            verdicts[token] = nil
        }
        forgive(now: now)
    }

    /// Ends what need not be sent any more: expired, suppressed, or not shown any longer.
    mutating func forgive(now: Now) {
        debts = debts.filter { debt in
            guard debt.ending == .open || debt.mayBeAhead, let token = debt.token else {
                return true
            }
            return debt.read.event.expiresAt > now.wall && !isSuppressed(token)
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
        return payload.event.serial == debt.read.event.serial
            || payload.event.group == debt.read.event.group
                && payload.sequence > debt.read.sequence
    }

    /// Accepted, or dead: also for an event whose earlier push was rejected before its walk came by.
    mutating func ended(_ flight: Flight) { debts = debts.filter { !answers(flight, $0) } }

    mutating func rejected(_ flight: Flight, _ ending: Ending, isWalking: Bool) {
        for index in debts.indices
        where debts[index].ending == .open && answers(flight, debts[index]) {
            debts[index].ending = ending
            debts[index].mayBeAhead = isWalking
        }
    }

    /// A dead letter names these tokens, in hexadecimal.
    mutating func written(letter: String, ticket: UInt64) {
        for index in debts.indices where debts[index].ending == .unwritten {
            let hexadecimal = Hexadecimal.encode(debts[index].token!.bytes)
            if letter.contains("\"\(hexadecimal)\"") {
                debts[index].ending = .written(ticket: ticket)
            }
        }
    }

    mutating func acknowledged(_ ticket: UInt64) {
        debts.removeAll { $0.ending == .written(ticket: ticket) }
    }

    /// The partition is another worker's: it reads again whatever is still owed.
    mutating func unassigned(partition: Int) {
        debts.removeAll { $0.read.partition == partition }
        recent.removeAll { $0.partition == partition }
    }

    /// A debt that this stored offset would lose.
    func lost(partition: Int, stored: Int64) -> Debt? {
        debts.first { $0.read.partition == partition && $0.read.offset < stored }
    }
}
