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
        guard core.phase == .running else { return }
        core.refreshTokens(for: connections)
        for index in core.pools.indices where !core.pools[index].waiting.isEmpty {
            core.pools[index].usedAt = core.now.monotonic
            guard core.pools[index].token != nil else { continue }
            pingSilentConnections(of: index)
            core.pools[index].waiting.dispatches(at: core.now.monotonic)
            for part in SendingPart.allCases { dispatch(part, of: index) }
        }
    }

    private mutating func dispatch(_ part: SendingPart, of pool: Int) {
        while core.pools[pool].waiting.most(of: part) > 0,
            let connection = leastLoaded(of: pool, for: part)
        {
            send(part, of: pool, on: connection)
        }
    }

    private mutating func pingSilentConnections(of pool: Int) {
        for index in core.pools[pool].connections
        where connections[index].machine.wantsPing(at: core.now.monotonic) {
            ping(index)
        }
    }

    private func leastLoaded(of pool: Int, for part: SendingPart) -> Int? {
        let isKeptBack = core.pools[pool].waiting.isKeptBack(part, at: core.now.monotonic)
        return core.pools[pool].leastLoaded { [connections] index in
            guard connections[index].streamsFree(isKeptBack) > 0, connections[index].hasRoom,
                !connections[index].health.isAvoided
            else { return nil }
            return connections[index].health.load(
                inFlight: connections[index].machine.streamsInFlight)
        }
    }

    /// Sends the pool's next pushes on a connection, as far as its streams and its room allow.
    private mutating func send(_ part: SendingPart, of pool: Int, on index: Int) {
        let isKeptBack = core.pools[pool].waiting.isKeptBack(part, at: core.now.monotonic)
        let openedMax = min(
            Self.chunk, connections[index].streamsFree(isKeptBack),
            core.pools[pool].waiting.most(of: part))
        assert(
            openedMax > 0 && connections[index].pool == pool,
            "the connection is of the push's pool and has a free stream")
        let token = core.pools[pool].token!
        let authorization = Authorization(token)
        connections[index].shownTokens.show(
            key: token.keyGeneration, generation: token.generation, at: core.now.monotonic)
        var opened = 0
        var failure: HTTP2Error?
        var waiting = core.pools[pool].waiting[isPatient: part.isPatient]
        while opened < openedMax, connections[index].hasRoom,
            let slot = waiting.popFirst(core.states)
        {
            let push = UnsafePointer(core.slab.push(slot))
            if push.pointee.expiresAt <= core.now.monotonic {
                core.outcomes.append(PushOutcome(slot: slot, kind: .expired))
                continue
            }
            let stream = streams + Int(slot)
            stream.pointee = ClientStream(
                tag: slot, body: push.pointee.body, bodyBytes: Int(push.pointee.bodyBytes))
            do {
                try connections[index].submit(
                    push, token: core.slab.token(slot), authorization: authorization,
                    stream: stream, constants: constants)
            } catch {
                failure = error
                waiting.prepend(slot, core.states)
                break
            }
            core.states[Int(slot)].since = core.now.monotonic
            connections[index].inFlight.append(slot, core.states)
            opened &+= 1
        }
        core.pools[pool].waiting[isPatient: part.isPatient] = waiting
        core.pools[pool].waiting.sent(opened, of: part)
        withExtendedLifetime(token) {}
        if connections[index].machine.streamsInFlight == 0 {
            connections[index].health.woken(at: core.now.monotonic)
        }
        connections[index].machine.streamsOpened(opened)
        core.pools[pool].sent(opened)
        core.counts.requests &+= UInt64(opened)
        if let failure { sessionFailed(index, failure) } else { flush(index, partly: false) }
    }

    /// Writes the waiting output: only full TLS records, or everything if `partly`, at the end of a
    /// turn.
    mutating func flush(_ index: Int, partly: Bool) {
        do {
            let progress = try connections[index].flush(
                partly: partly, bytes: &core.counts.bytesSent)
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
        _ = try? connections[index].flush(partly: true, bytes: &core.counts.bytesSent)
        endStreams(index)
        lost(index, error.description)
    }

    /// Queues again a push that was provably not processed. Its wait starts over.
    mutating func sendAgain(_ slot: PushSlot, pool: Int) {
        core.sendAgain(slot, pool: pool, waitingSince: core.now.monotonic)
    }
}
