// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel

/// Fan-outs with the ledger whose claims they keep.
struct FanOutBench: ~Copyable {
    var ledger = OffsetTracker(registrationGrace: .zero)
    var fanOuts: FanOutTable
    var bodies = BodyStore()
    /// Subjects whose last fan-out has ended.
    private(set) var left: [SubjectID] = []
    private let assignments: [AssignmentID]
    private var sequence: UInt64 = 0

    init(cursorsMax: Int = 100) {
        fanOuts = FanOutTable(cursorsMax: cursorsMax)
        assignments = [ledger.open(0, startOffset: 0), ledger.open(1, startOffset: 0)]
    }

    /// How many entries the fan-outs visit now, of lists of this length, until none can go on.
    mutating func visited(
        at now: MonotonicTime, of count: Int, standsStill: Bool = false
    ) -> Int {
        var visited = 0
        fanOuts.standsStill = standsStill
        while true {
            let step = fanOuts.step(most: 16, &ledger, &bodies, now: now) { _ in count }
            switch step {
            case .visit(let positions, _): visited += positions.count
            case .left: continue
            case .idle: return visited
            }
        }
    }

    /// Reads an event of this partition and lets it go through its subject's `count` tokens.
    @discardableResult mutating func start(
        subject: UInt32, partition: Int, count: Int,
        spread: (window: Duration, since: MonotonicTime)? = nil, rounds: FanOutRounds? = nil,
        _ change: (inout FanOutRequest) -> Void = { _ in }
    ) -> FanOutRequest {
        sequence += 1
        let offset = ledger.nextOffset(assignments[partition])
        var request = FanOutRequest(
            subject: SubjectID(rawValue: subject), filter: AudienceFilter(environment: nil),
            expiresAt: .after(.seconds(3600)),
            origin: RecordPosition(topic: 0, partition: Int32(partition), offset: offset),
            readSequence: sequence, subjectTag: subject)
        change(&request)
        let claim = ledger.read(assignments[partition], offset)
        fanOuts.start(
            request, count: count,
            spread: spread.map { FanOutSpread(window: $0.window, now: $0.since) },
            rounds: rounds, claim: claim, &ledger)
        checkInvariants()
        return request
    }

    /// A turn of the fan-out whose turn it is.
    mutating func step(most: Int, count: (SubjectID) -> Int) -> FanOutTable.Step {
        while true {
            let step = fanOuts.step(most: most, &ledger, &bodies, count: count)
            guard case .left(let subject) = step else { return step }
            left.append(subject)
        }
    }

    func checkInvariants() {
        fanOuts.checkInvariants()
        ledger.checkInvariants()
    }

    mutating func committableOffset(_ partition: Int) -> Int64 {
        ledger.committableOffset(assignments[partition], now: .after(.zero))
    }

    /// The oldest offset of this partition that a push made by `fanOut` would hold.
    func oldestHeld(by fanOut: Int, partition: Int) -> Int64 {
        var oldest = Int64.max
        fanOuts.forEachClaim(of: fanOut) { claim in
            guard claim.epoch == assignments[partition].epoch else { return }
            oldest = min(oldest, ledger.offset(of: claim))
        }
        return oldest
    }
}

/// Random events over lists that change by swap-remove and append.
struct FanOutRun: ~Copyable {
    private struct Owed {
        let request: FanOutRequest
        /// Entries that were listed when the event was read and that it has not met.
        var entries: Set<Int>
    }

    private var bench = FanOutBench()
    private var dice: SplitMix64
    private var lists: [[Int]] = []
    private var nextEntry = 0
    private var owed: [Owed] = []
    private var fault: String?

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        for _ in 0..<3 {
            let count = Int(dice.next(below: 12))
            lists.append(Array(nextEntry..<nextEntry + count))
            nextEntry += count
        }
    }

    mutating func step() {
        switch dice.next(below: 10) {
        case 0: start()
        case 1, 2: append()
        case 3, 4: remove()
        default: advance()
        }
    }

    /// The first event that could be forgotten before it has met all of its tokens.
    mutating func difference() -> String? {
        if let fault { return fault }
        for event in owed where !event.entries.isEmpty {
            let origin = event.request.origin!
            guard bench.committableOffset(Int(origin.partition)) <= origin.offset else {
                return "\(origin) passed; not met: \(event.entries)"
            }
        }
        owed.removeAll { $0.entries.isEmpty }
        return nil
    }

    /// Lets every fan-out end; what is left then.
    mutating func windDown() -> String? {
        for _ in 0..<5_000 where !bench.fanOuts.isEmpty {
            advance()
            if let difference = difference() { return difference }
        }
        if !bench.fanOuts.isEmpty { return "fan-outs do not end" }
        if let missed = owed.first { return "\(missed.request.origin!) missed \(missed.entries)" }
        return bench.ledger.claimCount == 0 ? nil : "\(bench.ledger.claimCount) claims are left"
    }

    private mutating func start() {
        let subject = Int(dice.next(below: 3))
        let kinds = dice.next(below: 4) == 0 ? [KindID(rawValue: 1)] : []
        let payload = dice.next(below: 5) == 0
        let request = bench.start(
            subject: UInt32(subject), partition: Int(dice.next(below: 2)),
            count: lists[subject].count
        ) {
            $0.filter.kinds = kinds
            if payload { $0.ask(for: .someAlert) }
        }
        owed.append(Owed(request: request, entries: Set(lists[subject])))
    }

    private mutating func append() {
        lists[Int(dice.next(below: 3))].append(nextEntry)
        nextEntry += 1
    }

    private mutating func remove() {
        let subject = Int(dice.next(below: 3))
        guard !lists[subject].isEmpty else { return }
        let index = Int(dice.next(below: UInt64(lists[subject].count)))
        let gone = lists[subject][index]
        let last = lists[subject].removeLast()
        for event in owed.indices { owed[event].entries.remove(gone) }
        guard index < lists[subject].count else { return }
        lists[subject][index] = last
        for fanOut in bench.fanOuts.fanOuts(of: SubjectID(rawValue: UInt32(subject))) {
            meet(last, fanOut: fanOut)
        }
    }

    private mutating func advance() {
        let lists = self.lists
        let most = 1 + Int(dice.next(below: 3))
        let step = bench.step(most: most) { lists[Int($0.rawValue)].count }
        if case .visit(let positions, let fanOut) = step {
            let list = lists[Int(bench.fanOuts.request(of: fanOut).subject.rawValue)]
            guard list.indices.contains(positions), (1...most).contains(positions.count) else {
                fault = "visits \(positions) of \(list.count)"
                return
            }
            for position in positions { meet(list[position], fanOut: fanOut) }
        }
        bench.checkInvariants()
    }

    /// What this fan-out makes for `entry` answers for each of its events, and must hold as much.
    private mutating func meet(_ entry: Int, fanOut: Int) {
        let request = bench.fanOuts.request(of: fanOut)
        for index in owed.indices where owed[index].entries.contains(entry) {
            let event = owed[index].request
            guard event.subject == request.subject, event.filter == request.filter,
                event.payloadType == request.payloadType
            else { continue }
            if event.payloadType != nil, event.origin != request.origin { continue }
            let oldest = bench.oldestHeld(by: fanOut, partition: Int(event.origin!.partition))
            if oldest > event.origin!.offset {
                fault = "a push for \(event.origin!) would not hold it"
            }
            if request.readSequence < event.readSequence {
                fault = "\(event.origin!) seems answered"
            }
            owed[index].entries.remove(entry)
        }
    }
}

extension EventPayload {
    static let someAlert = EventPayload(body: Array("{}".utf8), type: .alert)
}
