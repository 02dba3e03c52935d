// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// Turns received bytes into outcomes.
extension NGHTTP2DeliveryLoop {
    /// The most TLS records read from one connection before the others have their turn.
    private static let readsMax = 8

    mutating func read(_ index: Int) {
        connections[index].hasMoreToRead = false
        for _ in 0..<Self.readsMax {
            switch connections[index].link!.tls.read(into: input) {
            case .bytes(let count):
                core.counts.bytesReceived &+= UInt64(count)
                guard received(index, count) else { return }
            case .wantsRead, .wantsWrite: return
            case .closed: return lost(index, "closed by the server")
            case .failed(let error): return lost(index, error.description)
            }
        }
        connections[index].hasMoreToRead = true
    }

    /// Feeds the session with received bytes. Returns false if the connection is gone.
    private mutating func received(_ index: Int, _ count: Int) -> Bool {
        do {
            let bytes = UnsafeRawBufferPointer(rebasing: input[..<count])
            try connections[index].link!.session.receive(bytes)
            // Acknowledgements are serialised now, so that nothing precedes the next HEADERS.
            try connections[index].serialise()
        } catch {
            endStreams(index)
            noteFacts(index)
            sessionFailed(index, error)
            return false
        }
        connections[index].machine.heard(at: core.now.monotonic)
        endStreams(index)
        noteFacts(index)
        return true
    }

    /// Turns the ends of streams into outcomes, and queues again the pushes that were not
    /// processed.
    mutating func endStreams(_ index: Int) {
        let ends = connections[index].link!.session.ends
        guard ends.count > 0 else { return }
        let pool = connections[index].pool
        var answered = 0
        var authenticated = 0
        // Answers that the connection's health has not been told: it is told them in order.
        var succeeded = 0
        var accepted: PushSlot?
        for end in ends {
            let slot = end.stream.pointee.tag
            assert(
                end.stream == streams + Int(slot), "a stream ends under the slot of its own push")
            connections[index].inFlight.remove(slot, core.states)
            let status = end.stream.pointee.status
            if status == 200 {
                // Nothing can follow that would change a 200, so a stream cut after it is accepted.
                answered &+= 1
                authenticated &+= 1
                succeeded &+= 1
                accepted = slot
                core.accepted(slot)
            } else if end.stream.pointee.isAnswered {
                answered &+= 1
                connections[index].health.succeeded(succeeded, at: core.now.monotonic)
                let effect = rejected(index, end.stream)
                if effect.isAuthenticated { authenticated &+= 1 }
                succeeded = effect.isFailure ? 0 : 1
            } else if end.isRefused {
                core.counts.refused &+= 1
                core.pools[pool].sizing.faulted(1)
                _ = core.failed(.refusal, slot, on: index, of: connections)
                sendAgain(slot, pool: pool)
            } else {
                core.counts.resets &+= 1
                unanswered(slot, index)
            }
        }
        if let accepted { core.noteAnswerTime(of: accepted, pool: pool) }
        if answered > 0 {
            connections[index].health.succeeded(succeeded, at: core.now.monotonic)
        }
        core.pools[pool].returned(ends.count)
        connections[index].machine.streamsEnded(
            ends.count, answered: answered, authenticated: authenticated)
        if authenticated > 0, !connections[index].isAuthenticated {
            connections[index].isAuthenticated = true
            core.pools[pool].authenticated()
        }
        connections[index].link!.session.forgetEnds()
    }

    /// Ends a push whose stream is given up while it is open: its request timed out, the port is
    /// stopping, or its connection ended. The head of the answer may have arrived: a 200 counts,
    /// whatever would have followed.
    mutating func leftOpen(_ slot: PushSlot, _ index: Int) {
        if streams[Int(slot)].status == 200 { core.accepted(slot) } else { unanswered(slot, index) }
    }

    private mutating func unanswered(_ slot: PushSlot, _ index: Int) {
        let isOutlier = core.failed(.fault, slot, on: index, of: connections)
        core.unknown(slot, isOutlier: isOutlier)
    }

    /// Handles an answer other than 200.
    private mutating func rejected(
        _ index: Int, _ stream: UnsafeMutablePointer<ClientStream>
    ) -> DeliveryCore.AnswerEffect {
        let slot = stream.pointee.tag
        let status = stream.pointee.status
        let body = connections[index].link!.session.withAnswerBody(of: stream) {
            AnswerBody(UnsafeRawBufferPointer($0), parser: &core.parser)
        }
        let effect = core.rejected(
            slot, status: status, retryAfterSeconds: stream.pointee.retryAfterSeconds, body,
            on: index, of: connections)
        if effect.isToLeave { connections[index].machine.retired() }
        return effect
    }

    /// Passes on what the session has learnt about the connection: SETTINGS, PING answers, GOAWAY.
    private mutating func noteFacts(_ index: Int) {
        let pool = connections[index].pool
        if connections[index].link!.session.takeSettings() {
            let announced = connections[index].link!.session.announcedStreamLimit
            connections[index].machine.settingsArrived(announced: announced, at: core.now.monotonic)
            if let least = connections[index].link!.session.takeLeastTableLimit() {
                connections[index].headers!.tableLimitChanged(to: least)
            }
            let tableLimit = connections[index].link!.session.headerTableLimit
            connections[index].headers!.tableLimitChanged(to: tableLimit)
        }
        if connections[index].link!.session.takePingAnswer() {
            connections[index].machine.pingAnswered()
        }
        guard let goAway = connections[index].link!.session.takeGoAway() else { return }
        core.count(\.goAways, of: pool)
        connections[index].machine.retired()
        let body = goAway.debugData.withUnsafeBytes { AnswerBody($0, parser: &core.parser) }
        let reason = body.unknownReason ?? (body.reason == .none ? "no reason" : body.reason.name)
        core.pools[pool].log.write(
            .goAway, goAway.errorCode == 0 ? .info : .warning,
            "APNs ends a connection (GOAWAY)",
            ["reason": "\(reason)", "error": "\(goAway.errorCode)"], at: core.now.monotonic)
    }
}
