// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Lifecycle

@Suite struct `The throttle of deferred pushes` {
    private let now = MonotonicTime(nanoseconds: 5_000_000_000)

    @Test func `the throttle does nothing while there is room`() {
        var throttle = DeferredThrottle()
        #expect(throttle.next(hasRoom: true, isRelaxed: true, now: now) == nil)
        #expect(throttle.next(hasRoom: true, isRelaxed: false, now: now) == nil)
        #expect(!throttle.isPaused)
    }

    @Test func `the throttle pauses once, as soon as there is no room`() {
        var throttle = DeferredThrottle()
        #expect(throttle.next(hasRoom: false, isRelaxed: false, now: now) == .pause)
        #expect(throttle.next(hasRoom: false, isRelaxed: false, now: now) == nil)
        #expect(throttle.isPaused)
    }

    @Test func `the throttle resumes only when enough is free, and once`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false, now: now)
        #expect(throttle.next(hasRoom: true, isRelaxed: false, now: now) == nil)
        #expect(throttle.isPaused)
        #expect(throttle.next(hasRoom: true, isRelaxed: true, now: now) == .resume)
        #expect(throttle.next(hasRoom: true, isRelaxed: true, now: now) == nil)
        #expect(!throttle.isPaused)
    }

    @Test func `the throttle resumes after a second if anything is free`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false, now: now)
        let soon = throttle.next(
            hasRoom: true, isRelaxed: false, now: now + .milliseconds(999))
        #expect(soon == nil)
        let late = throttle.next(hasRoom: true, isRelaxed: false, now: now + .seconds(1))
        #expect(late == .resume)
    }

    @Test func `the throttle stays shut while there is no room at all`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false, now: now)
        #expect(throttle.next(hasRoom: false, isRelaxed: true, now: now) == nil)
        #expect(throttle.isPaused)
    }

    @Test func `the throttle knows nothing of a pause once the partitions are new`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false, now: now)
        throttle.reset()
        #expect(throttle.next(hasRoom: true, isRelaxed: false, now: now) == nil)
        #expect(!throttle.isPaused)
    }
}
