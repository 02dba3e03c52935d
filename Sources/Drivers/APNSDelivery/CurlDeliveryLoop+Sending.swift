// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import Logging
internal import PushModel

/// Moves pushes from a pool's lists to requests on its connections.
extension CurlDeliveryLoop {
    /// How many pushes go to one connection before the least loaded one is chosen again.
    private static let chunk = 16

    mutating func dispatchAll() {
        guard core.phase == .running else { return }
        for index in core.pools.indices where !core.pools[index].waiting.isEmpty {
            guard core.pools[index].token != nil else { continue }
            core.pools[index].usedAt = core.now.monotonic
            for connection in core.pools[index].connections {
                connections[connection].machine.wanted(at: core.now.monotonic)
            }
            core.pools[index].waiting.dispatches(at: core.now.monotonic)
            for part in SendingPart.allCases { dispatch(part, of: index) }
        }
    }

    private mutating func dispatch(_ part: SendingPart, of pool: Int) {
        while let slot = nextWaiting(part, of: pool),
            let connection = leastLoaded(pool, for: part, slot)
        {
            send(part, of: pool, on: connection)
        }
    }

    /// The first push of this part that has not expired; nil where none of it is to be sent. Expired
    /// ones before it leave their list.
    private mutating func nextWaiting(_ part: SendingPart, of pool: Int) -> PushSlot? {
        while core.pools[pool].waiting.most(of: part) > 0 {
            let slot = core.pools[pool].waiting[isPatient: part.isPatient].first
            guard core.slab.push(slot).pointee.expiresAt <= core.now.monotonic else { return slot }
            core.pools[pool].waiting[isPatient: part.isPatient].remove(slot, core.states)
            core.outcomes.append(PushOutcome(slot: slot, kind: .expired))
        }
        return nil
    }

    private func leastLoaded(_ pool: Int, for part: SendingPart, _ slot: PushSlot) -> Int? {
        let bytes = Int(core.slab.push(slot).pointee.bodyBytes)
        let isKeptBack = core.pools[pool].waiting.isKeptBack(part, at: core.now.monotonic)
        return core.pools[pool].leastLoaded { [connections] index in
            guard connections[index].takes(bodyBytes: bytes, isKeptBack: isKeptBack),
                !connections[index].health.isAvoided
            else { return nil }
            return connections[index].health.load(inFlight: connections[index].inFlightCount)
        }
    }

    private mutating func send(_ part: SendingPart, of pool: Int, on index: Int) {
        let isKeptBack = core.pools[pool].waiting.isKeptBack(part, at: core.now.monotonic)
        let token = core.pools[pool].token!
        connections[index].shownTokens.show(
            key: token.keyGeneration, generation: token.generation, at: core.now.monotonic)
        if connections[index].inFlightCount == 0 {
            connections[index].health.woken(at: core.now.monotonic)
        }
        var sent = 0
        let sentMax = min(Self.chunk, core.pools[pool].waiting.most(of: part))
        while sent < sentMax, let slot = nextWaiting(part, of: pool) {
            let bytes = Int(core.slab.push(slot).pointee.bodyBytes)
            guard connections[index].takes(bodyBytes: bytes, isKeptBack: isKeptBack) else { break }
            core.pools[pool].waiting[isPatient: part.isPatient].remove(slot, core.states)
            let position = connections[index].claim()
            request.compose(
                slot, of: core.slab, token: token, on: &connections[index][position].pointee)
            assert(connections[index].pool == pool, "a push goes to a connection of its own pool")
            connections[index].multi.add(connections[index][position].pointee)
            connections[index].machine.requestSent(bytes: bytes)
            core.states[Int(slot)].since = core.now.monotonic
            sent &+= 1
        }
        core.pools[pool].waiting.sent(sent, of: part)
        core.pools[pool].sent(sent)
        core.counts.requests &+= UInt64(sent)
        // Adding a request sets libcurl's timer to zero, which starts the request.
        connections[index].collectEnds(at: core.now.monotonic)
    }

    /// Queues again a push that was never sent. Its wait counts from when it was taken from the
    /// port: each of its tries is a connect of libcurl's, so a failed connect must not restart the
    /// wait.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        core.sendAgain(slot, pool: pool, waitingSince: core.states[Int(slot)].takenAt)
    }
}
