// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Is never compiled: `scripts/mutate.py --check` compares what the operators make of it with
// expected.txt.

struct Example {
    private let logger: Logger
    var count = 0
    let most: Int

    // What an initializer assigns must be assigned; a default argument may not be broken.
    init(logger: Logger, most: Int = max(1, 2)) {
        self.logger = logger
        self.most = most
        announce()
    }

    // A bound within a condition: both are mutants. A call with an argument that has one.
    mutating func add(_ more: Int) -> Bool {
        precondition(more >= 0, "a count is not negative")
        guard count < most else { return false }
        count += min(more, most - count)
        logger.info("added", metadata: ["more": "\(more > 1)"])
        return more > 1 ? true : false
    }

    // Several conditions; an assignment and a call that throws. Not the binding, nor what awaits.
    mutating func change(to wanted: Int?) async throws {
        if let wanted, wanted != count, try await isAllowed(wanted) {
            count = wanted
            try write(
                count,  // The number.
                at: most)
        }
        while count.isMultiple(of: 2) { count /= 2 }
    }

    // A bound on two lines is one line where it is broken.
    var isFull: Bool {
        count
            >= most
    }

    // Values, not statements; but the closure of two statements has one.
    func values(_ all: [Int]) -> Int? {
        let last: Int
        last = all.filter { isOdd($0) }.max() ?? 0
        all.forEach {
            note($0)
            _ = $0
        }
        return switch last {
        case 0: nothing()
        default: all.sorted { $0 < $1 }.first
        }
    }

    func checkInvariants() { assert(count <= most) }

    @inlinable func isOver(_ count: Int) -> Bool { count > most ? true : false }
    #if DEBUG
        func show() { print(count) }
    #endif
    deinit { close() }
}
