// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import Logging
internal import PushModel

/// From a pool's queue to the requests of its connections.
extension CurlDeliveryLoop {
    /// So many pushes go to one connection before the least loaded one is chosen anew.
    private static let chunk = 16
    /// A push that could not be sent more often than this goes back to the planner.
    private static let resendsMax = 8

    /// Gets the token of this turn for each pool that needs one. Comes before the choice of
    /// connections, since a new key retires those that have seen another.
    mutating func refreshTokens() {
        guard phase == .running else { return }
        for index in pools.indices where !pools[index].waiting.isEmpty { refreshToken(of: index) }
    }

    mutating func dispatchAll() {
        guard phase == .running else { return }
        for index in pools.indices where !pools[index].waiting.isEmpty {
            guard pools[index].token != nil else { continue }
            pools[index].usedAt = now.monotonic
            for connection in pools[index].places {
                connections[connection].machine.wanted(at: now.monotonic)
            }
            while let slot = nextWaiting(of: index), let connection = leastLoaded(index, slot) {
                send(pool: index, connection: connection)
            }
        }
    }

    /// The head of the queue, once those have left it that expired meanwhile.
    private mutating func nextWaiting(of pool: Int) -> PushSlot? {
        while !pools[pool].waiting.isEmpty {
            let slot = pools[pool].waiting.first
            guard slab.push(slot).pointee.expiresAt <= now.monotonic else { return slot }
            pools[pool].waiting.remove(slot, places)
            outcomes.append(PushOutcome(slot: slot, kind: .expired))
        }
        return nil
    }

    private func leastLoaded(_ pool: Int, _ slot: PushSlot) -> Int? {
        let bytes = Int(slab.push(slot).pointee.bodyBytes)
        var best: Int?
        var load = Int.max
        for index in pools[pool].places {
            let machine = connections[index].machine
            guard machine.requestsFree > 0, machine.hasRoom(for: bytes),
                machine.requestsInFlight < load
            else { continue }
            load = machine.requestsInFlight
            best = index
        }
        return best
    }

    private mutating func send(pool: Int, connection index: Int) {
        let token = pools[pool].token!
        if connections[index].keyGeneration == nil {
            connections[index].keyGeneration = token.keyGeneration
        }
        var sent = 0
        while sent < Self.chunk, connections[index].machine.requestsFree > 0,
            let slot = nextWaiting(of: pool)
        {
            let bytes = Int(slab.push(slot).pointee.bodyBytes)
            guard connections[index].machine.hasRoom(for: bytes) else { break }
            pools[pool].waiting.remove(slot, places)
            let position = connections[index].claim()
            request.compose(
                slot, of: slab, token: token, on: &connections[index][position].pointee)
            connections[index].multi.add(connections[index][position].pointee)
            connections[index].machine.requestSent(bytes: bytes)
            places[Int(slot)].since = now.monotonic
            sent &+= 1
        }
        pools[pool].inFlight &+= sent
        counts.requests &+= UInt64(sent)
        // Adding sets the timer, to zero, which starts the requests.
        connections[index].settle(at: now.monotonic)
    }

    private mutating func refreshToken(of pool: Int) {
        do {
            let token = try pools[pool].settings.providerTokens.current(now: now)
            pools[pool].token = token
            for index in pools[pool].places {
                guard let seen = connections[index].keyGeneration else { continue }
                if seen != token.keyGeneration { connections[index].machine.retired() }
            }
        } catch {
            pools[pool].token = nil
            pools[pool].log.write(
                .providerToken, .error, error.description,
                remedy: "check the credential's key file, key ID and team ID", at: now.monotonic)
        }
    }

    /// Puts a push that was never sent back at the head of its queue. It has waited since it was
    /// first given to a connection.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        places[Int(slot)].resends += 1
        guard phase == .running, places[Int(slot)].resends <= Self.resendsMax else {
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            return
        }
        pools[pool].waiting.prepend(slot, places)
    }

    /// Gives waiting pushes back: all of them, or those that have waited for longer than a pool
    /// without a connection may keep them.
    mutating func giveBackWaiting(pool: Int, all: Bool) {
        let limit = now.monotonic - pools[pool].settings.limits.waitMax
        while !pools[pool].waiting.isEmpty {
            let slot = pools[pool].waiting.first
            guard all || places[Int(slot)].since <= limit else { return }
            pools[pool].waiting.remove(slot, places)
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
        }
    }
}
