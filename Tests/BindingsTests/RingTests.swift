// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import FleetKit
internal import Glibc
internal import LinuxIO
internal import Testing

@Suite struct `A ring between two threads` {
    /// As planner and delivery do it: what belongs to a slot is written before the slot is handed
    /// over, read and answered by the other thread, and touched again when the slot has come back.
    /// Neither thread sleeps, so that nothing but the rings orders the two.
    @Test func `a ring between two threads hands over what was written, there and back`() throws {
        let rings = SharedRings()
        let other = try NamedThread.start(name: "answering") { rings.answer() }
        let wrong = rings.ask()
        other.join()
        #expect(wrong == 0)
    }

    private final class SharedRings: @unchecked Sendable {
        // SAFETY: a word is touched only by the thread that has its slot.
        private let words = UnsafeMutablePointer<Int>.allocate(capacity: slots)
        private let questions = SPSCRing<UInt32>(capacity: slots)
        private let answers = SPSCRing<UInt32>(capacity: slots)
        private let patience = Patience()

        private static let slots = 64
        private static let rounds = 5000

        deinit { words.deallocate() }

        /// How many answers are missing or were not to what was asked.
        func ask() -> Int {
            var vacant = Array(0..<UInt32(Self.slots))
            var asked = Array(repeating: 0, count: Self.slots)
            var sent = 0
            var right = 0
            for _ in 0..<Self.rounds {
                while sent < Self.rounds, let slot = vacant.popLast() {
                    sent += 1
                    asked[Int(slot)] = sent
                    words[Int(slot)] = sent
                    guard questions.push(slot) else { return Self.rounds }
                }
                guard let slot = take(from: answers) else { break }
                if words[Int(slot)] == -asked[Int(slot)] { right += 1 }
                vacant.append(slot)
            }
            return Self.rounds - right
        }

        func answer() {
            for _ in 0..<Self.rounds {
                guard let slot = take(from: questions) else { return }
                words[Int(slot)] = -words[Int(slot)]
                guard answers.push(slot) else { return }
            }
        }

        /// The next slot; nil when none comes in time.
        private func take(from ring: SPSCRing<UInt32>) -> UInt32? {
            var slot: UInt32 = 0
            while true {
                let taken = withUnsafeMutablePointer(to: &slot) {
                    ring.pop(into: UnsafeMutableBufferPointer(start: $0, count: 1))
                }
                if taken == 1 { return slot }
                if patience.isOver { return nil }
                sched_yield()
            }
        }
    }
}
