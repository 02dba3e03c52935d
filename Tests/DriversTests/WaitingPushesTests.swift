// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import APNSDelivery

@Suite final class `Waiting pushes of a pool` {
    private let states = UnsafeMutablePointer<SlotState>.allocate(capacity: 256)
    private var waiting = WaitingPushes()
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    init() { states.initialize(repeating: SlotState(), count: 256) }

    deinit { states.deallocate() }

    private func append(_ slots: Range<PushSlot>, isPatient: Bool) {
        for slot in slots {
            states[Int(slot)].isPatient = isPatient
            waiting.append(slot, isPatient: isPatient, states)
        }
    }

    /// Sends as many as streams allow, as a transport does.
    /// - Parameters:
    ///   - streams: how many are free.
    ///   - kept: how many of them are kept from patient pushes.
    private func send(_ streams: Int, kept: Int = 0) -> [PushSlot] {
        var sent: [PushSlot] = []
        waiting.dispatches(at: now)
        for part in SendingPart.allCases {
            let left = waiting.isKeptBack(part, at: now) ? kept : 0
            while waiting.most(of: part) > 0, sent.count < streams - left {
                sent.append(waiting[isPatient: part.isPatient].popFirst(states)!)
                waiting.sent(1, of: part)
            }
        }
        return sent
    }

    @Test func `prompt pushes that wait in a pool go before patient ones that came first`() {
        append(0..<3, isPatient: true)
        append(3..<5, isPatient: false)
        #expect(waiting.count == 5 && waiting.next == .prompt)
        #expect(send(5) == [3, 4, 0, 1, 2])
        #expect(waiting.isEmpty && send(1).isEmpty)
    }

    @Test func `pushes that were refused go first among those like them`() {
        append(1..<3, isPatient: true)
        append(4..<6, isPatient: false)
        states[0].isPatient = true
        waiting.prepend(0, states)
        waiting.prepend(3, states)
        #expect(send(6) == [3, 4, 5, 0, 1, 2])
    }

    @Test func `patient pushes wait for streams beyond what is kept, and prompt ones do not`() {
        append(0..<1, isPatient: false)
        append(100..<110, isPatient: true)
        #expect(send(8, kept: 3) == [0, 100, 101, 102, 103])
        #expect(send(3, kept: 3).isEmpty)
        append(1..<4, isPatient: false)
        #expect(send(3, kept: 3) == [1, 2, 3])
    }

    @Test func `a tenth of what goes is patient while prompt pushes take every stream`() {
        append(200..<220, isPatient: true)
        var (patient, next) = (0, PushSlot(0))
        for _ in 0..<200 {
            if waiting.prompt.isEmpty {
                append(next..<next + 1, isPatient: false)
                next = (next + 1) % 200
            }
            patient += send(1, kept: 1).count { $0 >= 200 }
        }
        #expect(patient == 20)
    }

    @Test func `a pool without prompt pushes for a minute keeps nothing from patient ones`() {
        append(0..<1, isPatient: true)
        #expect(!waiting.isKeptBack(.patient, at: now))
        append(1..<2, isPatient: false)
        waiting.dispatches(at: now)
        #expect(waiting.isKeptBack(.patient, at: now))
        #expect(!waiting.isKeptBack(.owed, at: now) && !waiting.isKeptBack(.prompt, at: now))
        let last = now + .seconds(60) - .nanoseconds(1)
        #expect(waiting.isKeptBack(.patient, at: last))
        #expect(!waiting.isKeptBack(.patient, at: now + .seconds(60)))
    }
}
