// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

/// Keys are numbered; 0 is the one in use at the start.
@Suite struct `The rotation of signing keys` {
    private static func after(_ seconds: Int) -> MonotonicTime { .after(.seconds(seconds)) }

    @Test func `the rotation of keys tries a key that has come, and uses it once it is accepted`() {
        var rotation = KeyRotation(keyInUse: 0)
        let none = rotation.found([0], now: Self.after(0))
        #expect(none.isEmpty && rotation.nextTrial(now: Self.after(0)) == nil)
        let new = rotation.found([0, 1], now: Self.after(5))
        #expect(new == [1])
        #expect(rotation.nextTrial(now: Self.after(5)) == 1)
        #expect(rotation.keyInUse == 0)
        let again = rotation.tried(1, .accepted, now: Self.after(6))
        #expect(again == nil && rotation.keyInUse == 1)
        let known = rotation.found([0, 1], now: Self.after(10))
        #expect(known.isEmpty && rotation.nextTrial(now: Self.after(9999)) == nil)
    }

    @Test(arguments: [KeyRotation.Result.refused, .unanswered])
    func `the rotation keeps the old key while the new is refused, asked ever more rarely`(
        result: KeyRotation.Result
    ) {
        var rotation = KeyRotation(keyInUse: 0)
        _ = rotation.found([0, 1], now: Self.after(0))
        var now = Self.after(0)
        var waits: [Duration] = []
        for _ in 0..<8 {
            #expect(rotation.nextTrial(now: now) == 1)
            let next = rotation.tried(1, result, now: now)
            guard let next else { return #expect(Bool(false), "it is tried again") }
            #expect(rotation.nextTrial(now: next - .nanoseconds(1)) == nil)
            waits.append(next - now)
            now = next
        }
        #expect(waits == [10, 20, 40, 80, 160, 300, 300, 300].map { Duration.seconds($0) })
        #expect(rotation.keyInUse == 0)
        _ = rotation.tried(1, .accepted, now: now)
        #expect(rotation.keyInUse == 1)
    }

    @Test func `the rotation of keys goes back to the old key when the new one is refused later`() {
        var rotation = KeyRotation(keyInUse: 0)
        _ = rotation.found([0, 1], now: Self.after(0))
        _ = rotation.tried(1, .accepted, now: Self.after(0))
        rotation.refusedInUse(now: Self.after(60))
        #expect(rotation.nextTrial(now: Self.after(60)) == 0)
        _ = rotation.tried(0, .accepted, now: Self.after(60))
        #expect(rotation.keyInUse == 0)
    }

    @Test func `the rotation leaves keys alone that were there at first, while the first is good`()
    {
        var rotation = KeyRotation(keyInUse: 0, spares: [1], candidates: [])
        _ = rotation.found([0, 1], now: Self.after(0))
        #expect(rotation.nextTrial(now: Self.after(0)) == nil)
        rotation.refusedInUse(now: Self.after(1))
        #expect(rotation.nextTrial(now: Self.after(1)) == 1)
    }

    @Test func `the rotation of keys tries at once those that are known to be newer`() {
        let rotation = KeyRotation(keyInUse: 0, candidates: [1])
        #expect(rotation.nextTrial(now: Self.after(0)) == 1)
    }

    @Test func `the rotation tries other keys when the file of the one in use is gone`() {
        var rotation = KeyRotation(keyInUse: 0, spares: [1])
        _ = rotation.found([1], now: Self.after(0))
        #expect(!rotation.isGone && rotation.nextTrial(now: Self.after(0)) == nil)
        _ = rotation.found([1], now: Self.after(5))
        #expect(rotation.isGone && rotation.nextTrial(now: Self.after(5)) == 1)
        _ = rotation.tried(1, .refused, now: Self.after(5))
        #expect(rotation.keyInUse == 0)
        let next = rotation.tried(1, .accepted, now: Self.after(60))
        #expect(next == nil && rotation.keyInUse == 1 && !rotation.isGone)
        rotation.refusedInUse(now: Self.after(61))
        #expect(rotation.nextTrial(now: Self.after(61)) == nil, "the old one's file is gone")
    }

    /// As when a look falls between the two steps of a replacement.
    @Test func `the rotation does not take an old key for a new one because one look missed it`() {
        var rotation = KeyRotation(keyInUse: 0)
        _ = rotation.found([0, 1], now: Self.after(0))
        _ = rotation.tried(1, .accepted, now: Self.after(0))
        _ = rotation.found([], now: Self.after(5))
        let back = rotation.found([0, 1], now: Self.after(10))
        #expect(back.isEmpty && rotation.nextTrial(now: Self.after(10)) == nil)
        for seconds in [15, 20] { _ = rotation.found([1], now: Self.after(seconds)) }
        let anew = rotation.found([0, 1], now: Self.after(25))
        #expect(anew == [0], "gone for longer, and given again")
    }
}
