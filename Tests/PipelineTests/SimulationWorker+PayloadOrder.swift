// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// What a worker has done with payloads that other events replace, by key: no older one of them may
/// be made a push of its row in `deferred` after a newer one was accepted, as far as that is promised.
struct SimulatedPayloadOrder {
    struct Acceptance {
        let payloadAt: WallTime
        let turn: Int
        /// Of the key's partition of `deferred`.
        let wasOwner: Bool
        /// Where its log ended when it was assigned, if it was not replayed yet.
        let replayEnd: Int64?
    }

    private struct Reading {
        let offset: Int64
        let turn: Int
    }

    /// Its own deferrals, and the turn of each, by when the payload was read.
    private var deferred: [[UInt8]: [WallTime: Int]] = [:]
    private var acceptances: [[UInt8]: [Acceptance]] = [:]
    /// Payloads in the partitions that are its own, by when they were read.
    private var readings: [[UInt8]: [WallTime: Reading]] = [:]
    private var turn = 0

    mutating func deferred(_ key: [UInt8], payloadAt: WallTime) {
        turn += 1
        if deferred[key]?[payloadAt] == nil { deferred[key, default: [:]][payloadAt] = turn }
    }

    /// - Parameter isRewritten: its owner has written again what it had read before. Any other record
    ///   asks for a push of its own, also with a payload that was ended before.
    mutating func read(
        _ key: [UInt8], payloadAt: WallTime, offset: Int64, isRewritten: Bool
    ) {
        turn += 1
        if isRewritten, readings[key]?[payloadAt] != nil { return }
        readings[key, default: [:]][payloadAt] = Reading(offset: offset, turn: turn)
    }

    /// The partition of these keys is assigned anew.
    mutating func forgetReadings(where isOfPartition: ([UInt8]) -> Bool) {
        readings = readings.filter { !isOfPartition($0.key) }
    }

    mutating func accepted(
        _ key: [UInt8], payloadAt: WallTime, wasOwner: Bool, replayEnd: Int64?
    ) {
        turn += 1
        acceptances[key, default: []].append(
            Acceptance(
                payloadAt: payloadAt, turn: turn, wasOwner: wasOwner, replayEnd: replayEnd))
    }

    /// A newer payload of the key that this worker got accepted while it knew of the older one, or had
    /// yet to read it in the log that it was given.
    func isOvertaken(_ key: [UInt8], payloadAt: WallTime) -> Bool {
        acceptances[key, default: []].contains { newer in
            guard newer.payloadAt > payloadAt else { return false }
            if let own = deferred[key]?[payloadAt], own < newer.turn { return true }
            guard let reading = readings[key]?[payloadAt] else { return false }
            return reading.turn < newer.turn || newer.replayEnd.map { reading.offset < $0 } ?? false
        }
    }

    /// Whether this worker owes the owner of the row a tombstone: it has deferred the older
    /// payload, and got a newer one accepted.
    func mustEnd(_ key: [UInt8], payloadAt: WallTime) -> Bool {
        guard let own = deferred[key]?[payloadAt] else { return false }
        return acceptances[key, default: []].contains {
            $0.payloadAt > payloadAt && $0.turn > own && !$0.wasOwner
        }
    }
}

extension SimulationWorker {
    /// A payload that comes from its row in `deferred` is handed over.
    func checkOrder(
        of slot: PushSlot, key: [UInt8], payloadAt: WallTime, world: SimulatedKafka
    ) throws(SimulationFailure) {
        guard pipeline.state.pushes[slot].isOfDeferredShare else { return }
        try require(
            !payloadOrder.isOvertaken(key, payloadAt: payloadAt),
            "an older payload is sent after a newer one was accepted: "
                + String(decoding: key, as: UTF8.self))
    }

    func noteAcceptance(of flight: Flight, world: SimulatedKafka) {
        let partition = world.deferred.partition(of: flight.key)
        payloadOrder.accepted(
            flight.key, payloadAt: flight.payloadAt,
            wasOwner: deferredAssignments[partition] != nil,
            replayEnd: deferredEnds[partition])
    }

    /// Nothing more will come to end this payload, which another worker has taken from its row.
    func mustHaveEnded(_ key: [UInt8], payloadAt: WallTime, world: SimulatedKafka) -> Bool {
        guard payloadOrder.mustEnd(key, payloadAt: payloadAt),
            !world.deferred.isEnded(key, payloadAt: payloadAt)
        else { return false }
        let pending = pipeline.records + produced.map(\.record)
        return !pending.contains { $0.key == key && $0.endedPayloadAt != nil }
    }
}
