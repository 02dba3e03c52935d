// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@Suite struct `A lap through a changing list` {
    @Test func `a lap meets each entry once, downwards`() {
        var cursor = LapCursor(count: 4)
        let steps = (0..<5).map { _ in cursor.step(count: 4, most: 1) }
        #expect(steps == [.visit(3..<4), .visit(2..<3), .visit(1..<2), .visit(0..<1), .finished])
    }

    @Test func `a lap goes as far as it may in one step, and no further than its own end`() {
        var cursor = LapCursor(count: 5)
        var steps = [cursor.step(count: 5, most: 3)]
        cursor.extend()
        for _ in 0..<5 { steps.append(cursor.step(count: 5, most: 3)) }
        #expect(
            steps == [
                .visit(2..<5), .visit(0..<2), .lapEnded, .visit(2..<5), .finished, .finished,
            ])
    }

    @Test func `a lap through an empty list ends at once`() {
        var cursor = LapCursor(count: 0)
        cursor.extend()
        let steps = (0..<2).map { _ in cursor.step(count: 0, most: 1) }
        #expect(steps == [.lapEnded, .finished])
    }

    @Test func `a lap of a later event begins where the cursor stands and ends there again`() {
        var cursor = LapCursor(count: 4)
        var steps = [cursor.step(count: 4, most: 1), cursor.step(count: 4, most: 1)]
        cursor.extend()
        #expect(cursor.isExtended)
        for _ in 0..<6 { steps.append(cursor.step(count: 4, most: 1)) }
        #expect(
            steps == [
                .visit(3..<4), .visit(2..<3), .visit(1..<2), .visit(0..<1), .lapEnded,
                .visit(3..<4), .visit(2..<3),
                .finished,
            ])
    }

    @Test func `a lap of several passes can begin with any, and a later one with the next pass`() {
        var cursor = LapCursor(count: 2, passes: 3, first: 1)
        var passes: [Int] = []
        func next() -> LapCursor.Step {
            let step = cursor.step(count: 2, most: 1)
            if case .visit = step { passes.append(cursor.pass) }
            return step
        }
        #expect(next() == .visit(1..<2))
        cursor.extend()
        for _ in 0..<3 { _ = next() }
        #expect(passes == [1, 1, 2, 2] && next() == .lapEnded)
        for _ in 0..<4 { _ = next() }
        #expect(passes == [1, 1, 2, 2, 3, 3, 4, 4] && next() == .finished)
    }

    @Test func `a lap of a third event shares the way of the second`() {
        var cursor = LapCursor(count: 4)
        var steps = [cursor.step(count: 4, most: 1), cursor.step(count: 4, most: 1)]
        cursor.extend()
        for _ in 0..<3 { steps.append(cursor.step(count: 4, most: 1)) }
        #expect(steps == [.visit(3..<4), .visit(2..<3), .visit(1..<2), .visit(0..<1), .lapEnded])
        cursor.extend()
        let rest = (0..<6).map { _ in cursor.step(count: 4, most: 1) }
        #expect(
            rest == [
                .visit(3..<4), .visit(2..<3), .lapEnded, .visit(1..<2), .visit(0..<1), .finished,
            ])
    }

    @Test func `a lap ends when the list shrinks to nothing underneath`() {
        var cursor = LapCursor(count: 9)
        _ = cursor.step(count: 9, most: 1)
        cursor.extend()
        let steps = (0..<2).map { _ in cursor.step(count: 0, most: 1) }
        #expect(steps == [.lapEnded, .finished])
    }

    @Test func `a lap asked for at every step stays within two lists' lengths`() {
        var cursor = LapCursor(count: 10)
        var sinceLap = 0
        for _ in 0..<1_000 {
            switch cursor.step(count: 10, most: 1) {
            case .visit: sinceLap += 1
            case .lapEnded: sinceLap = 0
            case .finished: Issue.record("finished while extended")
            }
            cursor.extend()
            #expect(sinceLap <= 20)
        }
    }

    @Test func `a lap meets every entry of a random list that stayed, whatever comes and goes`() {
        for seed in 1...400 as ClosedRange<UInt64> {
            var run = LapRun(seed: seed)
            if let difference = run.play() {
                Issue.record("seed \(seed): \(difference)")
                return
            }
        }
    }
}

private struct LapRun {
    private var dice: SplitMix64
    private var list: [Int]
    private var nextEntry: Int
    private var cursor: LapCursor
    /// What each lap has not met yet of the entries that were there when it was asked for.
    private var current: Set<Int>
    private var next: Set<Int>?

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        nextEntry = Int(dice.next(below: 20))
        list = Array(0..<nextEntry)
        cursor = LapCursor(count: list.count)
        current = Set(list)
    }

    mutating func play() -> String? {
        var sinceLap = 0
        for step in 0..<600 {
            for _ in 0..<dice.next(below: 3) { change() }
            if step < 300, dice.next(below: 12) == 0 { extend() }
            // Nothing comes any more: it must end.
            let isFading = step >= 300
            let most = 1 + Int(dice.next(below: 4))
            switch cursor.step(count: list.count, most: most) {
            case .visit(let positions):
                guard list.indices.contains(positions), (1...most).contains(positions.count) else {
                    return "visits \(positions)"
                }
                for position in positions { meet(list[position]) }
                sinceLap = isFading ? sinceLap + positions.count : 0
                if sinceLap > 2 * nextEntry { return "the lap does not end" }
            case .lapEnded:
                guard current.isEmpty else { return "step \(step): skipped \(current)" }
                guard let following = next else { return "a lap that nobody asked for" }
                (current, next) = (following, nil)
            case .finished:
                guard current.isEmpty, next == nil else { return "step \(step): \(current)" }
                return nil
            }
        }
        return "never finished"
    }

    /// The sets of two events that wait for the same lap are met together.
    private mutating func extend() {
        cursor.extend()
        next = (next ?? []).union(list)
    }

    private mutating func meet(_ entry: Int) {
        current.remove(entry)
        next?.remove(entry)
    }

    private mutating func change() {
        if list.isEmpty || dice.next(below: 5) < 2 {
            guard nextEntry < 200 else { return }
            list.append(nextEntry)
            nextEntry += 1
            return
        }
        let index = Int(dice.next(below: UInt64(list.count)))
        let gone = list[index]
        let last = list.removeLast()
        meet(gone)
        guard index < list.count else { return }
        list[index] = last
        // The owner hands over what a removal has moved.
        meet(last)
    }
}
