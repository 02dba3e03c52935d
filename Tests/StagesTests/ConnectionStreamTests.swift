// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

private func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(seconds * 1e9))
}

/// A machine that began at second 0, taken as far as the named phase.
private func machine(
    _ phase: ConnectionMachine.Phase, announced: UInt32 = 1000,
    limits: ConnectionLimits = ConnectionLimits()
) -> ConnectionMachine {
    var machine = ConnectionMachine(limits: limits, at: at(0), jitter: 0.5)
    if phase == .connecting { return machine }
    machine.connected(at: at(0))
    if phase == .settingsAwaited { return machine }
    machine.settingsArrived(announced: announced, at: at(0))
    if phase == .warming { return machine }
    machine.streamsOpened(1)
    machine.streamsEnded(1, answered: 1, authenticated: 1)
    return machine
}

@Suite struct `A connection's streams` {
    @Test func `the streams are none before the first SETTINGS`() {
        #expect(machine(.connecting).streamsFree == 0)
        #expect(machine(.settingsAwaited).streamsFree == 0)
    }

    @Test func `a connection's streams are one until the provider token is accepted`() {
        var machine = machine(.warming, announced: 1000)
        #expect(machine.streamsFree == 1)
        machine.streamsOpened(1)
        #expect(machine.streamsFree == 0)
    }

    @Test func `the streams are as many as announced after an answer`() {
        var machine = machine(.warming, announced: 500)
        machine.streamsOpened(1)
        machine.streamsEnded(1, answered: 1, authenticated: 1)
        #expect(machine.phase == .open)
        #expect(machine.streamsFree == 500)
    }

    @Test func `a sixteenth of the streams is kept from patient pushes, once there are any`() {
        #expect(machine(.settingsAwaited).streamsKept == 0)
        #expect(machine(.warming).streamsKept == 0)
        #expect(machine(.open).streamsKept == 62)
        #expect(machine(.open, announced: 16).streamsKept == 1)
        #expect(machine(.open, announced: 4).streamsKept == 1)
        #expect(machine(.open, announced: 3).streamsKept == 0, "it has none to spare")
    }

    @Test func `the streams stay one after a 403`() {
        var machine = machine(.warming)
        machine.streamsOpened(1)
        machine.streamsEnded(1, answered: 1, authenticated: 0)
        #expect(machine.phase == .warming)
        #expect(machine.streamsFree == 1)
    }

    @Test func `the streams are as many as announced when SETTINGS comes before the answer`() {
        var machine = machine(.warming, announced: 1)
        machine.streamsOpened(1)
        machine.settingsArrived(announced: 1000, at: at(1))
        #expect(machine.phase == .open)
        #expect(machine.streamsFree == 999)
    }

    @Test func `the streams follow the limit up and down at once`() {
        var machine = machine(.open, announced: 100)
        machine.streamsOpened(60)
        machine.settingsArrived(announced: 50, at: at(1))
        #expect(machine.streamsFree == 0)
        machine.streamsEnded(20, answered: 20, authenticated: 20)
        #expect(machine.streamsFree == 10)
        machine.settingsArrived(announced: 200, at: at(2))
        #expect(machine.streamsFree == 160)
        machine.settingsArrived(announced: 0, at: at(3))
        #expect(machine.streamsFree == 0)
    }

    @Test func `the streams never exceed our own bound, not even without an announced limit`() {
        var limits = ConnectionLimits()
        limits.streamsMax = 40
        #expect(machine(.open, announced: .max, limits: limits).streamsFree == 40)
        #expect(machine(.open, announced: .max, limits: limits).capacity == 40)
    }

    @Test func `a retired connection takes no streams, and is drained when the last has ended`() {
        var machine = machine(.open)
        machine.streamsOpened(2)
        machine.retired()
        #expect(machine.streamsFree == 0)
        #expect(!machine.isWanted)
        machine.streamsEnded(1, answered: 1, authenticated: 1)
        #expect(!machine.isDrained)
        machine.streamsEnded(1, answered: 1, authenticated: 1)
        #expect(machine.isDrained)
    }
}

@Suite struct `A connection's time` {
    @Test func `a connection's time runs out when no SETTINGS comes`() {
        let machine = machine(.settingsAwaited)
        #expect(machine.nextDeadline == at(10))
        #expect(machine.due(at: at(9.9)) == .nothing)
        #expect(machine.due(at: at(10)) == .abort(.connectTimeout))
    }

    @Test func `a connection's time ends with its age, plus or minus a tenth`() {
        var limits = ConnectionLimits()
        limits.ageMax = .seconds(100)
        for (jitter, age) in [(0.0, 90.0), (0.5, 100), (1, 110)] {
            var machine = ConnectionMachine(limits: limits, at: at(0), jitter: jitter)
            machine.connected(at: at(0))
            machine.settingsArrived(announced: 1, at: at(0))
            #expect(machine.due(at: at(age - 0.1)) == .nothing)
            #expect(machine.due(at: at(age)) == .retire)
        }
    }

    @Test func `a connection asks for a PING after a silence and sends nothing until its answer`() {
        var machine = machine(.open)
        #expect(!machine.wantsPing(at: at(59)))
        #expect(machine.wantsPing(at: at(60)))
        machine.pingSent(at: at(60))
        #expect(!machine.wantsPing(at: at(60)))
        #expect(machine.streamsFree == 0)
        machine.heard(at: at(61))
        machine.pingAnswered()
        #expect(machine.streamsFree == 1000)
        #expect(!machine.wantsPing(at: at(62)))
    }

    @Test(arguments: [ConnectionMachine.Phase.warming, .open])
    func `a connection has a PING due after an hour of silence, and one only`(
        _ phase: ConnectionMachine.Phase
    ) {
        var machine = machine(phase)
        machine.heard(at: at(100))
        #expect(machine.nextDeadline == at(3700))
        #expect(machine.due(at: at(3699)) == .nothing)
        #expect(machine.due(at: at(3700)) == .ping)
        machine.pingSent(at: at(3700))
        #expect(machine.due(at: at(3701)) == .nothing)
        #expect(machine.due(at: at(3705)) == .abort(.pingTimeout))
        machine.heard(at: at(3701))
        machine.pingAnswered()
        #expect(machine.nextDeadline == at(7301))
    }

    @Test(arguments: [ConnectionMachine.Phase.connecting, .settingsAwaited])
    func `a connection has no PING due before SETTINGS`(_ phase: ConnectionMachine.Phase) {
        #expect(machine(phase).due(at: at(3700)) == .abort(.connectTimeout))
    }

    @Test func `a connection is to be replaced rather than asked when both are due`() {
        let machine = machine(.open)
        #expect(machine.due(at: at(24 * 3600)) == .retire)
    }

    @Test func `a connection's time runs out when the PING is not answered`() {
        var machine = machine(.open)
        machine.pingSent(at: at(60))
        #expect(machine.nextDeadline == at(65))
        #expect(machine.due(at: at(64.9)) == .nothing)
        #expect(machine.due(at: at(65)) == .abort(.pingTimeout))
    }

    @Test func `a connection's time runs out after three requests in a row without an answer`() {
        var machine = machine(.open)
        machine.streamsOpened(5)
        machine.streamTimedOut()
        machine.streamTimedOut()
        machine.streamsEnded(1, answered: 1, authenticated: 1)
        machine.streamTimedOut()
        #expect(machine.due(at: at(1)) == .nothing)
        #expect(machine.streamsInFlight == 1)
        machine.streamsOpened(2)
        machine.streamTimedOut()
        machine.streamTimedOut()
        #expect(machine.due(at: at(1)) == .abort(.requestTimeouts))
    }
}
