// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// Moves pushes from a pool's lists to streams on its connections.
extension NGHTTP2DeliveryLoop {
    /// How many pushes go to one connection before the least loaded one is chosen again.
    private static let chunk = 32

    mutating func dispatchAll() {
        guard desk.phase == .running else { return }
        desk.refreshTokens(for: connections)
        for index in desk.pools.indices where !desk.pools[index].waiting.isEmpty {
            desk.pools[index].usedAt = desk.now.monotonic
            guard desk.pools[index].token != nil else { continue }
            pingSilentConnections(of: index)
            desk.pools[index].waiting.dispatches(at: desk.now.monotonic)
            for part in SendingPart.allCases { dispatch(part, of: index) }
        }
    }

    private mutating func dispatch(_ part: SendingPart, of pool: Int) {
        while desk.pools[pool].waiting.most(of: part) > 0,
            let connection = leastLoaded(of: pool, for: part)
        {
            send(part, of: pool, on: connection)
        }
    }

    private mutating func pingSilentConnections(of pool: Int) {
        for index in desk.pools[pool].places
        where connections[index].machine.wantsPing(at: desk.now.monotonic) {
            ping(index)
        }
    }

    private func leastLoaded(of pool: Int, for part: SendingPart) -> Int? {
        let isKeptBack = desk.pools[pool].waiting.isKeptBack(part, at: desk.now.monotonic)
        return desk.pools[pool].leastLoaded { [connections] index in
            guard connections[index].streamsFree(isKeptBack) > 0, connections[index].hasRoom,
                !connections[index].health.isAvoided
            else { return nil }
            return connections[index].health.load(
                inFlight: connections[index].machine.streamsInFlight)
        }
    }

    /// Sends the pool's next pushes on a connection, as far as its streams and its room allow.
    private mutating func send(_ part: SendingPart, of pool: Int, on index: Int) {
        let isKeptBack = desk.pools[pool].waiting.isKeptBack(part, at: desk.now.monotonic)
        let openedMax = min(
            Self.chunk, connections[index].streamsFree(isKeptBack),
            desk.pools[pool].waiting.most(of: part))
        assert(openedMax > 0 && connections[index].pool == pool, "no stream of the pool is free")
        let token = desk.pools[pool].token!
        let authorization = Authorization(token)
        connections[index].shownTokens.show(
            key: token.keyGeneration, generation: token.generation, at: desk.now.monotonic)
        var opened = 0
        var failure: HTTP2Error?
        var waiting = desk.pools[pool].waiting[isPatient: part.isPatient]
        while opened < openedMax, connections[index].hasRoom,
            let slot = waiting.popFirst(desk.places)
        {
            let push = UnsafePointer(desk.slab.push(slot))
            if push.pointee.expiresAt <= desk.now.monotonic {
                desk.outcomes.append(PushOutcome(slot: slot, kind: .expired))
                continue
            }
            let stream = streams + Int(slot)
            stream.pointee = ClientStream(
                tag: slot, body: push.pointee.body, bodyBytes: Int(push.pointee.bodyBytes))
            do {
                try connections[index].submit(
                    push, token: desk.slab.token(slot), authorization: authorization,
                    stream: stream, constants: constants)
            } catch {
                failure = error
                waiting.prepend(slot, desk.places)
                break
            }
            desk.places[Int(slot)].since = desk.now.monotonic
            connections[index].inFlight.append(slot, desk.places)
            opened &+= 1
        }
        desk.pools[pool].waiting[isPatient: part.isPatient] = waiting
        desk.pools[pool].waiting.sent(opened, of: part)
        withExtendedLifetime(token) {}
        if connections[index].machine.streamsInFlight == 0 {
            connections[index].health.woken(at: desk.now.monotonic)
        }
        connections[index].machine.streamsOpened(opened)
        desk.pools[pool].sent(opened)
        desk.counts.requests &+= UInt64(opened)
        if let failure { sessionFailed(index, failure) } else { flush(index, partly: false) }
    }

    /// Writes the waiting output: only full TLS records, or everything if `partly`, at the end of a
    /// turn.
    mutating func flush(_ index: Int, partly: Bool) {
        do {
            let progress = try connections[index].flush(
                partly: partly, bytes: &desk.counts.bytesSent)
            // Writing also ends streams: those that were cancelled or answered early.
            endStreams(index)
            if case .failed(let error) = progress { lost(index, error.description) }
        } catch {
            sessionFailed(index, error)
        }
    }

    /// Handles a session that cannot go on: its stream IDs are used up after 2^30 requests, or the
    /// peer broke the protocol. nghttp2's own answer to that is still sent.
    mutating func sessionFailed(_ index: Int, _ error: HTTP2Error) {
        if error.isOutOfStreams {
            connections[index].machine.retired()
            return
        }
        _ = try? connections[index].flush(partly: true, bytes: &desk.counts.bytesSent)
        endStreams(index)
        lost(index, error.description)
    }

    /// Queues again a push that was provably not processed. Its wait starts over.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        desk.sendAgain(slot, pool: pool, waitingSince: desk.now.monotonic)
    }
}
