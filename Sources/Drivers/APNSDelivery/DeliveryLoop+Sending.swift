// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// From a pool's queue to the streams of its connections.
extension DeliveryLoop {
    /// So many pushes go to one connection before the least loaded one is chosen anew.
    private static let chunk = 32
    /// A push that servers hand back more often than this goes back to the planner.
    static let resendsMax = 8

    mutating func dispatchAll() {
        guard phase == .running else { return }
        for index in pools.indices where !pools[index].waiting.isEmpty {
            pools[index].usedAt = now.monotonic
            guard refreshToken(of: index) else { continue }
            pingSilentConnections(of: index)
            while !pools[index].waiting.isEmpty, let connection = leastLoaded(of: index) {
                send(pool: index, connection: connection)
            }
        }
    }

    /// Gets the pool's token for this turn, and leaves the connections that have seen another key.
    private mutating func refreshToken(of pool: Int) -> Bool {
        do {
            let token = try pools[pool].settings.providerTokens.current(now: now)
            pools[pool].token = token
            for index in pools[pool].places {
                guard let seen = connections[index].keyGeneration else { continue }
                if seen != token.keyGeneration { connections[index].machine.retired() }
            }
            return true
        } catch {
            pools[pool].log.write(
                .providerToken, .error, error.description,
                remedy: "check the credential's key file, key ID and team ID", at: now.monotonic)
            return false
        }
    }

    private mutating func pingSilentConnections(of pool: Int) {
        for index in pools[pool].places
        where connections[index].machine.wantsPing(at: now.monotonic) {
            connections[index].link!.session.ping()
            connections[index].machine.pingSent(at: now.monotonic)
        }
    }

    private func leastLoaded(of pool: Int) -> Int? {
        var best: Int?
        var load = Int.max
        for index in pools[pool].places {
            guard connections[index].machine.streamsFree > 0, connections[index].hasRoom else {
                continue
            }
            let streams = connections[index].machine.streamsInFlight
            if streams < load {
                load = streams
                best = index
            }
        }
        return best
    }

    /// Gives the next pushes of the pool to a connection that has streams and room for them.
    private mutating func send(pool: Int, connection index: Int) {
        let streams = min(Self.chunk, connections[index].machine.streamsFree)
        let token = pools[pool].token!
        let authorization = Authorization(token)
        connections[index].keyGeneration = token.keyGeneration
        var opened = 0
        var failure: HTTP2Error?
        while opened < streams, connections[index].hasRoom,
            let slot = pools[pool].waiting.popFirst(table.places)
        {
            let push = UnsafePointer(slab.push(slot))
            if push.pointee.expiresAt <= now.monotonic {
                outcomes.append(PushOutcome(slot: slot, kind: .expired))
                continue
            }
            let stream = table.streams + Int(slot)
            stream.pointee = ClientStream(
                tag: slot, body: push.pointee.body, bodyBytes: Int(push.pointee.bodyBytes))
            do {
                try connections[index].submit(
                    push, token: slab.token(slot), authorization: authorization, stream: stream,
                    constants: constants)
            } catch {
                failure = error
                pools[pool].waiting.prepend(slot, table.places)
                break
            }
            table.places[Int(slot)].since = now.monotonic
            connections[index].inFlight.append(slot, table.places)
            opened &+= 1
        }
        withExtendedLifetime(token) {}
        connections[index].machine.streamsOpened(opened)
        pools[pool].inFlight &+= opened
        counts.requests &+= UInt64(opened)
        if let failure { sessionFailed(index, failure) } else { flush(index, partly: false) }
    }

    /// Writes what waits; `partly` at the end of the turn, full records before.
    mutating func flush(_ index: Int, partly: Bool) {
        do {
            let progress = try connections[index].flush(partly: partly, bytes: &counts.bytesSent)
            // Writing ends streams too: those that were cancelled or answered early.
            endStreams(index)
            if case .failed(let error) = progress { lost(index, error.description) }
        } catch {
            sessionFailed(index, error)
        }
    }

    /// A session that refuses to go on: out of stream ids after 2^30 requests, or a peer that
    /// breaks the protocol. What nghttp2 has to say about it is still sent.
    mutating func sessionFailed(_ index: Int, _ error: HTTP2Error) {
        if error.isOutOfStreams {
            connections[index].machine.retired()
            return
        }
        _ = try? connections[index].flush(partly: true, bytes: &counts.bytesSent)
        endStreams(index)
        lost(index, error.description)
    }

    /// Puts a push that was provably not processed back at the head of its queue.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        let place = table.places + Int(slot)
        place.pointee.resends &+= 1
        guard phase == .running, place.pointee.resends <= Self.resendsMax else {
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            return
        }
        place.pointee.since = now.monotonic
        pools[pool].waiting.prepend(slot, table.places)
    }

    /// Gives waiting pushes back: all of them, or those that have waited for longer than a pool
    /// without a connection may keep them.
    mutating func giveBackWaiting(pool: Int, all: Bool) {
        let limit = now.monotonic - pools[pool].settings.limits.waitMax
        while !pools[pool].waiting.isEmpty {
            let slot = pools[pool].waiting.first
            guard all || table.places[Int(slot)].since <= limit else { return }
            pools[pool].waiting.remove(slot, table.places)
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
        }
    }
}
