// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import Logging
internal import PushModel

/// Moves pushes from a pool's queue to requests on its connections.
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
            while let slot = nextWaiting(of: index), let connection = leastLoaded(index, slot) {
                send(pool: index, connection: connection)
            }
        }
    }

    /// The first push in the queue that has not expired. Expired ones before it leave the queue.
    private mutating func nextWaiting(of pool: Int) -> PushSlot? {
        while !desk.pools[pool].waiting.isEmpty {
            let slot = desk.pools[pool].waiting.first
            guard desk.slab.push(slot).pointee.expiresAt <= desk.now.monotonic else { return slot }
            desk.pools[pool].waiting.remove(slot, desk.places)
            desk.outcomes.append(PushOutcome(slot: slot, kind: .expired))
        }
        return nil
    }

    private func leastLoaded(_ pool: Int, _ slot: PushSlot) -> Int? {
        let bytes = Int(desk.slab.push(slot).pointee.bodyBytes)
        return desk.pools[pool].leastLoaded { [connections] index in
            guard connections[index].takes(bodyBytes: bytes),
                !connections[index].health.isAvoided
            else { return nil }
            return connections[index].health.load(inFlight: connections[index].inFlightCount)
        }
    }

    private mutating func send(pool: Int, connection index: Int) {
        let token = desk.pools[pool].token!
        connections[index].shownTokens.show(
            key: token.keyGeneration, generation: token.generation, at: desk.now.monotonic)
        if connections[index].inFlightCount == 0 {
            connections[index].health.woken(at: desk.now.monotonic)
        }
        var sent = 0
        while sent < Self.chunk, connections[index].machine.requestsFree > 0,
            let slot = nextWaiting(of: pool)
        {
            let bytes = Int(desk.slab.push(slot).pointee.bodyBytes)
            guard connections[index].machine.hasRoom(for: bytes) else { break }
            desk.pools[pool].waiting.remove(slot, desk.places)
            let position = connections[index].claim()
            request.compose(
                slot, of: desk.slab, token: token, on: &connections[index][position].pointee)
            assert(connections[index].pool == pool, "a push goes to another pool's connection")
            connections[index].multi.add(connections[index][position].pointee)
            connections[index].machine.requestSent(bytes: bytes)
            desk.places[Int(slot)].since = desk.now.monotonic
            sent &+= 1
        }
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
