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
                desk.counts.bytesReceived &+= UInt64(count)
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
        connections[index].machine.heard(at: desk.now.monotonic)
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
            assert(end.stream == streams + Int(slot), "a stream ends under another push's slot")
            connections[index].inFlight.remove(slot, desk.places)
            let status = end.stream.pointee.status
            if status == 200 {
                // Nothing can follow that would change a 200, so a stream cut after it is accepted.
                answered &+= 1
                authenticated &+= 1
                succeeded &+= 1
                accepted = slot
                desk.accepted(slot)
            } else if end.stream.pointee.isAnswered {
                answered &+= 1
                connections[index].health.succeeded(succeeded, at: desk.now.monotonic)
                let effect = rejected(index, end.stream)
                if effect.isAuthenticated { authenticated &+= 1 }
                succeeded = effect.isFailure ? 0 : 1
            } else if end.isRefused {
                desk.counts.refused &+= 1
                desk.pools[pool].sizing.faulted(1)
                _ = desk.failed(.refusal, slot, on: index, of: connections)
                sendAgain(slot, pool: pool)
            } else {
                desk.counts.resets &+= 1
                unanswered(slot, index)
            }
        }
        if let accepted { desk.noteAnswerTime(of: accepted, pool: pool) }
        if answered > 0 {
            connections[index].health.succeeded(succeeded, at: desk.now.monotonic)
        }
        desk.pools[pool].returned(ends.count)
        connections[index].machine.streamsEnded(
            ends.count, answered: answered, authenticated: authenticated)
        if authenticated > 0, !connections[index].isAuthenticated {
            connections[index].isAuthenticated = true
            desk.pools[pool].authenticated()
        }
        connections[index].link!.session.forgetEnds()
    }

    /// Ends a push whose stream is given up while it is open: its request timed out, the port is
    /// stopping, or its connection ended. The head of the answer may have arrived: a 200 counts,
    /// whatever would have followed.
    mutating func leftOpen(_ slot: PushSlot, _ index: Int) {
        if streams[Int(slot)].status == 200 { desk.accepted(slot) } else { unanswered(slot, index) }
    }

    private mutating func unanswered(_ slot: PushSlot, _ index: Int) {
        let isOutlier = desk.failed(.fault, slot, on: index, of: connections)
        desk.unknown(slot, isOutlier: isOutlier)
    }

    /// Handles an answer other than 200.
    private mutating func rejected(
        _ index: Int, _ stream: UnsafeMutablePointer<ClientStream>
    ) -> DeliveryDesk.AnswerEffect {
        let slot = stream.pointee.tag
        let status = stream.pointee.status
        let body = connections[index].link!.session.withAnswerBody(of: stream) {
            AnswerBody(UnsafeRawBufferPointer($0), parser: &desk.parser)
        }
        let effect = desk.rejected(
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
            connections[index].machine.settingsArrived(announced: announced, at: desk.now.monotonic)
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
        desk.count(\.goAways, of: pool)
        connections[index].machine.retired()
        let body = goAway.debugData.withUnsafeBytes { AnswerBody($0, parser: &desk.parser) }
        let reason = body.unknownReason ?? (body.reason == .none ? "no reason" : body.reason.name)
        desk.pools[pool].log.write(
            .goAway, goAway.errorCode == 0 ? .info : .warning,
            "GOAWAY: \(reason), error \(goAway.errorCode)", at: desk.now.monotonic)
    }
}
