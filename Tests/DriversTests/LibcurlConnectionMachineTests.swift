// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The machine of a libcurl connection` {
    private static func time(_ seconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0) + .seconds(seconds)
    }

    private static func cold() -> CurlConnectionMachine {
        CurlConnectionMachine(limits: ConnectionLimits(), at: time(0), jitter: 0.5)
    }

    private static func open() -> CurlConnectionMachine {
        var machine = cold()
        machine.requestSent(bytes: 30)
        machine.requestEnded(.authenticated, bytes: 30, at: time(0))
        return machine
    }

    @Test func `one request goes alone until its answer`() {
        var machine = Self.cold()
        #expect(machine.requestsFree == 1)
        machine.requestSent(bytes: 30)
        #expect(machine.phase == .warming)
        #expect(machine.requestsFree == 0)
        machine.requestEnded(.authenticated, bytes: 30, at: Self.time(1))
        #expect(machine.phase == .open)
        #expect(machine.requestsFree == CurlConnectionMachine.requestsMax)
    }

    @Test func `a 403 does not open a libcurl connection`() {
        var machine = Self.cold()
        machine.requestSent(bytes: 30)
        machine.requestEnded(.forbidden, bytes: 30, at: Self.time(1))
        #expect(machine.phase == .warming)
        #expect(machine.requestsFree == 1)
    }

    @Test func `bytes in flight stay within half of the window`() {
        var machine = Self.open()
        for _ in 0..<8 {
            #expect(machine.hasRoom(for: 4000))
            machine.requestSent(bytes: 4000)
        }
        #expect(!machine.hasRoom(for: 4000))
        #expect(machine.hasRoom(for: 700))
        machine.requestEnded(.authenticated, bytes: 4000, at: Self.time(1))
        #expect(machine.hasRoom(for: 4000))
    }

    @Test func `patient pushes leave requests, and bytes for the largest body`() {
        var machine = Self.open()
        let kept = PatientShare.kept(of: CurlConnectionMachine.requestsMax)
        #expect(kept > 0)
        while machine.takes(bodyBytes: 30, isKeptBack: true) { machine.requestSent(bytes: 30) }
        #expect(machine.requestsFree == kept)
        machine = Self.open()
        while machine.takes(bodyBytes: 4000, isKeptBack: true) { machine.requestSent(bytes: 4000) }
        #expect(machine.takes(bodyBytes: 5120, isKeptBack: false))
        machine.requestSent(bytes: 5120)
        #expect(!machine.takes(bodyBytes: 4000, isKeptBack: false))
    }

    @Test func `after a silence one request goes alone again, and its silence ends it`() {
        var machine = Self.open()
        machine.wanted(at: Self.time(59))
        #expect(machine.phase == .open)
        machine.wanted(at: Self.time(60))
        #expect(machine.requestsFree == 1)
        machine.requestSent(bytes: 30)
        machine.requestEnded(.timedOut, bytes: 30, at: Self.time(75))
        #expect(machine.isDrained)
    }

    @Test func `requests that time out in a row end it, unless an answer comes between`() {
        var machine = Self.open()
        for _ in 0..<4 { machine.requestSent(bytes: 30) }
        machine.requestEnded(.timedOut, bytes: 30, at: Self.time(1))
        machine.requestEnded(.reset, bytes: 30, at: Self.time(1))
        machine.requestEnded(.authenticated, bytes: 30, at: Self.time(1))
        machine.requestEnded(.timedOut, bytes: 30, at: Self.time(1))
        #expect(!machine.isDead)
        for _ in 0..<2 {
            machine.requestSent(bytes: 30)
            machine.requestEnded(.timedOut, bytes: 30, at: Self.time(2))
        }
        #expect(machine.isDead)
    }

    @Test func `a retired connection finishes what it has and takes no more`() {
        var machine = Self.open()
        machine.requestSent(bytes: 30)
        machine.retired()
        #expect(machine.requestsFree == 0)
        #expect(machine.capacity == 0)
        #expect(!machine.isDrained)
        machine.requestEnded(.authenticated, bytes: 30, at: Self.time(1))
        #expect(machine.phase == .retiring)
        #expect(machine.isDrained)
    }

    @Test func `a libcurl connection is old after its age`() {
        let machine = Self.open()
        #expect(!machine.isOld(at: Self.time(24 * 3600 - 1)))
        #expect(machine.isOld(at: Self.time(24 * 3600)))
        #expect(machine.nextDeadline == Self.time(24 * 3600))
    }

    @Test func `a 403 is a sign of life, a reset is none`() {
        var machine = Self.open()
        for end in [
            CurlConnectionMachine.RequestEnd.timedOut, .reset, .forbidden, .timedOut, .reset,
        ] {
            machine.requestSent(bytes: 30)
            machine.requestEnded(end, bytes: 30, at: Self.time(1))
            #expect(!machine.isDead)
        }
        machine.requestSent(bytes: 30)
        machine.requestEnded(.reset, bytes: 30, at: Self.time(1))
        #expect(machine.isDead)
    }

    @Test func `half of the window is used to its last byte`() {
        var machine = Self.open()
        machine.requestSent(bytes: CurlConnectionMachine.bytesMax - 5)
        #expect(machine.hasRoom(for: 5))
        #expect(!machine.hasRoom(for: 6))
    }

    @Test func `a silence with requests in flight shuts nothing`() {
        var machine = Self.open()
        machine.requestSent(bytes: 30)
        machine.wanted(at: Self.time(100))
        #expect(machine.phase == .open)
    }
}
