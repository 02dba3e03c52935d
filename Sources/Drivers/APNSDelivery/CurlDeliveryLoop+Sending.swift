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
        guard desk.phase == .running else { return }
        for index in desk.pools.indices where !desk.pools[index].waiting.isEmpty {
            guard desk.pools[index].token != nil else { continue }
            desk.pools[index].usedAt = desk.now.monotonic
            for connection in desk.pools[index].places {
                connections[connection].machine.wanted(at: desk.now.monotonic)
            }
            desk.pools[index].waiting.dispatches(at: desk.now.monotonic)
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
        while desk.pools[pool].waiting.most(of: part) > 0 {
            let slot = desk.pools[pool].waiting[isPatient: part.isPatient].first
            guard desk.slab.push(slot).pointee.expiresAt <= desk.now.monotonic else { return slot }
            desk.pools[pool].waiting[isPatient: part.isPatient].remove(slot, desk.places)
            desk.outcomes.append(PushOutcome(slot: slot, kind: .expired))
        }
        return nil
    }

    private func leastLoaded(_ pool: Int, for part: SendingPart, _ slot: PushSlot) -> Int? {
        let bytes = Int(desk.slab.push(slot).pointee.bodyBytes)
        let isKeptBack = desk.pools[pool].waiting.isKeptBack(part, at: desk.now.monotonic)
        return desk.pools[pool].leastLoaded { [connections] index in
            guard connections[index].takes(bodyBytes: bytes, isKeptBack: isKeptBack),
                !connections[index].health.isAvoided
            else { return nil }
            return connections[index].health.load(inFlight: connections[index].inFlightCount)
        }
    }

    private mutating func send(_ part: SendingPart, of pool: Int, on index: Int) {
        let isKeptBack = desk.pools[pool].waiting.isKeptBack(part, at: desk.now.monotonic)
        let token = desk.pools[pool].token!
        connections[index].shownTokens.show(
            key: token.keyGeneration, generation: token.generation, at: desk.now.monotonic)
        if connections[index].inFlightCount == 0 {
            connections[index].health.woken(at: desk.now.monotonic)
        }
        var sent = 0
        let sentMax = min(Self.chunk, desk.pools[pool].waiting.most(of: part))
        while sent < sentMax, let slot = nextWaiting(part, of: pool) {
            let bytes = Int(desk.slab.push(slot).pointee.bodyBytes)
            guard connections[index].takes(bodyBytes: bytes, isKeptBack: isKeptBack) else { break }
            desk.pools[pool].waiting[isPatient: part.isPatient].remove(slot, desk.places)
            let position = connections[index].claim()
            request.compose(
                slot, of: desk.slab, token: token, on: &connections[index][position].pointee)
            assert(connections[index].pool == pool, "a push goes to another pool's connection")
            connections[index].multi.add(connections[index][position].pointee)
            connections[index].machine.requestSent(bytes: bytes)
            desk.places[Int(slot)].since = desk.now.monotonic
            sent &+= 1
        }
        desk.pools[pool].waiting.sent(sent, of: part)
        desk.pools[pool].sent(sent)
        desk.counts.requests &+= UInt64(sent)
        // Adding a request sets libcurl's timer to zero, which starts the request.
        connections[index].collectEnds(at: desk.now.monotonic)
    }

    /// Queues again a push that was never sent. Its wait counts from when it was taken from the
    /// port: each of its tries is a connect of libcurl's, so a failed connect must not restart the
    /// wait.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        desk.sendAgain(slot, pool: pool, waitingSince: desk.places[Int(slot)].takenAt)
    }
}
