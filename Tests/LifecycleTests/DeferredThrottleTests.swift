// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Lifecycle

@Suite struct `The throttle of deferred pushes` {
    @Test func `the throttle does nothing while there is room`() {
        var throttle = DeferredThrottle()
        #expect(throttle.next(hasRoom: true, isRelaxed: true) == nil)
        #expect(throttle.next(hasRoom: true, isRelaxed: false) == nil)
        #expect(!throttle.isPaused)
    }

    @Test func `the throttle pauses once, as soon as there is no room`() {
        var throttle = DeferredThrottle()
        #expect(throttle.next(hasRoom: false, isRelaxed: false) == .pause)
        #expect(throttle.next(hasRoom: false, isRelaxed: false) == nil)
        #expect(throttle.isPaused)
    }

    @Test func `the throttle resumes only when enough is free, and once`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false)
        #expect(throttle.next(hasRoom: true, isRelaxed: false) == nil)
        #expect(throttle.isPaused)
        #expect(throttle.next(hasRoom: true, isRelaxed: true) == .resume)
        #expect(throttle.next(hasRoom: true, isRelaxed: true) == nil)
        #expect(!throttle.isPaused)
    }

    @Test func `the throttle stays shut while there is no room at all`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false)
        #expect(throttle.next(hasRoom: false, isRelaxed: true) == nil)
        #expect(throttle.isPaused)
    }

    @Test func `the throttle knows nothing of a pause once the partitions are new`() {
        var throttle = DeferredThrottle()
        _ = throttle.next(hasRoom: false, isRelaxed: false)
        throttle.reset()
        #expect(throttle.next(hasRoom: true, isRelaxed: false) == nil)
        #expect(!throttle.isPaused)
    }
}
