// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import PushModel
internal import Testing

@Suite struct `A random life of the ledger` {
    @Test(arguments: [Duration.zero, .milliseconds(300), .seconds(2)])
    func `the ledger agrees with a naive model after every step`(registrationGrace: Duration) {
        for seed in 1...40 as ClosedRange<UInt64> {
            var run = LedgerRun(registrationGrace: registrationGrace, seed: seed)
            for step in 0..<400 {
                run.step()
                if let difference = run.difference() {
                    Issue.record(
                        "grace \(registrationGrace), seed \(seed), step \(step): \(difference)")
                    return
                }
            }
            if let rest = run.windDown() {
                Issue.record("grace \(registrationGrace), seed \(seed), at the end: \(rest)")
                return
            }
        }
    }
}

/// An assignment as lists that are searched from end to end.
private struct AssignmentModel {
    let startOffset: Int64
    var reads: [(offset: Int64, time: MonotonicTime)] = []
    var isOpen = true
    var committableOffset: Int64

    init(startOffset: Int64) {
        self.startOffset = startOffset
        committableOffset = startOffset
    }

    var nextOffset: Int64 { reads.last.map { $0.offset + 1 } ?? startOffset }

    /// No offset from here on was read at least `registrationGrace` ago.
    func firstWithinGrace(now: MonotonicTime, registrationGrace: Duration) -> Int64 {
        reads.first { $0.time + registrationGrace > now }?.offset ?? nextOffset
    }

    /// All below was read more than `age` ago.
    func readBefore(now: MonotonicTime, age: Duration) -> Int64 {
        reads.last { $0.time + age <= now }.map { $0.offset + 1 } ?? startOffset
    }
}

private struct LedgerRun: ~Copyable {
    private var ledger: OffsetTracker
    private let registrationGrace: Duration
    private var dice: SplitMix64
    private var now = MonotonicTime.after(.seconds(100))
    private var assignments: [AssignmentID: AssignmentModel] = [:]
    private var epoch: UInt32 = 0
    /// Every claim that has not been given back, once for each time it was taken.
    private var claims: [(claim: OffsetClaim, offset: Int64)] = []
    private var fault: String?

    /// The window remembers in steps of 50 ms, and a step of this run takes up to 20 ms.
    private static let lag = Duration.milliseconds(100)

    init(registrationGrace: Duration, seed: UInt64) {
        ledger = OffsetTracker(registrationGrace: registrationGrace)
        self.registrationGrace = registrationGrace
        dice = SplitMix64(seed: seed)
        open()
    }

    mutating func step() {
        now = now + .milliseconds(Int64(dice.next(below: 21)))
        switch dice.next(below: 20) {
        case 0: open()
        case 1: close()
        case 2, 3: claimLate()
        case 4, 5: retain()
        case 6..<13: read()
        default: release()
        }
        ledger.checkInvariants()
    }

    /// The first thing in which the ledger and the model differ.
    mutating func difference() -> String? {
        if let fault { return fault }
        for (id, assignment) in assignments {
            guard ledger.isOpen(id) == assignment.isOpen else { return "isOpen of \(id)" }
            if !assignment.isOpen { continue }
            let oldest = claims.filter { $0.claim.epoch == id.epoch }.map(\.offset).min() ?? .max
            let atMost = min(
                oldest, assignment.firstWithinGrace(now: now, registrationGrace: registrationGrace))
            let age = registrationGrace == .zero ? .zero : registrationGrace + Self.lag
            let atLeast = min(oldest, assignment.readBefore(now: now, age: age))
            let committableOffset = ledger.committableOffset(id, now: now)
            guard (atLeast...atMost).contains(committableOffset) else {
                return
                    "committableOffset \(committableOffset) of \(id), not within \(atLeast)...\(atMost)"
            }
            guard committableOffset >= assignment.committableOffset else {
                return "the committable offset of \(id) went back"
            }
            assignments[id]?.committableOffset = committableOffset
            guard ledger.nextOffset(id) == assignment.nextOffset else { return "next of \(id)" }
            let endedOffset = min(oldest, assignment.nextOffset)
            guard ledger.endedOffset(id) == endedOffset else { return "endedOffset of \(id)" }
            guard ledger.isDrained(id) == (endedOffset == assignment.nextOffset) else {
                return "isDrained of \(id)"
            }
        }
        let distinct = Set(claims.map(\.claim)).count
        return ledger.claimCount == distinct ? nil : "\(ledger.claimCount) claims, not \(distinct)"
    }

    /// Gives everything back and waits for the end of the grace period; what is wrong then.
    mutating func windDown() -> String? {
        while !claims.isEmpty { release() }
        ledger.checkInvariants()
        if ledger.claimCount != 0 { return "\(ledger.claimCount) claims are left" }
        let end = now + registrationGrace + Self.lag
        while now < end {
            now = now + .milliseconds(20)
            if let difference = difference() { return difference }
        }
        for (id, assignment) in assignments where assignment.isOpen {
            if ledger.committableOffset(id, now: now) != assignment.nextOffset {
                return "\(id) never drains"
            }
        }
        return nil
    }

    private mutating func open() {
        let open = assignments.filter(\.value.isOpen).map(\.key.ordinal)
        guard let ordinal = (0..<4).first(where: { !open.contains($0) }) else { return }
        let startOffset = Int64(dice.next(below: 50))
        epoch += 1
        let id = ledger.open(ordinal, epoch: epoch, startOffset: startOffset)
        assignments[id] = AssignmentModel(startOffset: startOffset)
    }

    private mutating func close() {
        guard dice.next(below: 4) == 0, let id = someAssignment() else { return }
        ledger.close(id)
        assignments[id]?.isOpen = false
    }

    private mutating func read() {
        guard let id = someAssignment(), let assignment = assignments[id] else { return }
        let offset = assignment.nextOffset + Int64(dice.next(below: 3))
        ledger.received(id, offset: offset, now: now)
        assignments[id]?.reads.append((offset, now))
        guard dice.next(below: 3) > 0 else { return }
        let claim = ledger.claim(id)
        if claims.contains(where: { $0.claim == claim }) { fault = "\(claim) is claimed already" }
        if ledger.offset(of: claim) != offset { fault = "\(claim) is not at \(offset)" }
        claims.append((claim, offset))
    }

    private mutating func claimLate() {
        guard let id = someAssignment(), let assignment = assignments[id] else { return }
        let oldest = assignment.firstWithinGrace(now: now, registrationGrace: registrationGrace)
        guard let late = ledger.claimWithinGrace(id, now: now) else {
            if oldest < assignment.nextOffset { fault = "\(oldest) of \(id) was not claimed" }
            return
        }
        let offset = ledger.offset(of: late)
        if offset > oldest { fault = "\(id) claimed at \(offset), after \(oldest)" }
        if offset < assignment.committableOffset {
            fault = "\(id) claimed at \(offset), which had passed"
        }
        claims.append((late, offset))
    }

    private mutating func retain() {
        guard !claims.isEmpty else { return }
        let claim = claims[Int(dice.next(below: UInt64(claims.count)))]
        ledger.retain(claim.claim)
        claims.append(claim)
    }

    private mutating func release() {
        guard !claims.isEmpty else { return }
        let claim = claims.remove(at: Int(dice.next(below: UInt64(claims.count))))
        ledger.release(claim.claim)
    }

    /// In a fixed order, so that a seed replays.
    private mutating func someAssignment() -> AssignmentID? {
        let open = assignments.filter(\.value.isOpen).keys.sorted { $0.epoch < $1.epoch }
        return open.isEmpty ? nil : open[Int(dice.next(below: UInt64(open.count)))]
    }
}
