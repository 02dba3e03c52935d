// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import Logging
internal import PushModel

/// From the ends of libcurl's transfers to outcomes. The status decides, not libcurl's code: with
/// HTTP/2 7.88 calls complete what was cut and incomplete what was answered.
extension CurlDeliveryLoop {
    mutating func endRequests() {
        for index in connections.indices where !connections[index].ends.isEmpty {
            connections[index].progressAt = now.monotonic
            for end in connections[index].takeEnds() { ended(index, end) }
            noteConnection(index)
        }
    }

    private mutating func ended(_ index: Int, _ end: MultiHandle.End) {
        let easy = connections[index][end.position]
        let pool = connections[index].pool
        let slot = easy.pointee.tag
        let status = easy.pointee.status
        let isAnswered = status == 200 || (status > 200 && end.code == .ok)
        let requestEnd: CurlConnectionMachine.RequestEnd
        if isAnswered, !easy.pointee.isHTTP2 {
            // It was not APNs: what it did with the push nobody knows.
            requestEnd = .lost
            unknown(slot)
            http2Refused(pool)
        } else if isAnswered {
            requestEnd = status == 403 ? .forbidden : .welcomed
            answered(index, end.position, slot: slot, status: status)
        } else if easy.pointee.wasDispatched {
            requestEnd = unanswered(index, end, slot: slot)
        } else {
            requestEnd = .lost
            notSent(index, end, slot: slot)
        }
        connections[index].release(end.position)
        pools[pool].inFlight &-= 1
        connections[index].machine.requestEnded(
            requestEnd, bytes: Int(slab.push(slot).pointee.bodyBytes), at: now.monotonic)
    }

    private mutating func answered(_ index: Int, _ position: Int, slot: PushSlot, status: UInt16) {
        let pool = connections[index].pool
        if status != 403, !connections[index].wasWelcomed {
            connections[index].wasWelcomed = true
            pools[pool].welcomed()
        }
        let sentAt = places[Int(slot)].since
        guard status != 200 else {
            return outcomes.append(
                PushOutcome(slot: slot, kind: .answered, status: 200, sentAt: sentAt))
        }
        let body = connections[index][position].pointee.withAnswer {
            AnswerBody($0, parser: &parser)
        }
        if let text = body.unknownReason { keep(text, for: slot) }
        outcomes.append(
            PushOutcome(
                slot: slot, kind: .answered, status: status, reason: body.reason,
                apnsTimestamp: body.timestamp?.milliseconds ?? -1, sentAt: sentAt))
        switch AnswerTable.row(status: status, reason: body.reason).connection {
        case .keep: return
        case .retireAndRenew: renewToken(of: pool)
        case .retire: break
        }
        connections[index].machine.retired()
        pools[pool].log.write(
            .answered, .warning,
            "APNs answers \(status) \(body.unknownReason ?? body.reason.name): new connection",
            at: now.monotonic)
    }

    /// It was sent, and nobody knows what became of it.
    private mutating func unanswered(
        _ index: Int, _ end: MultiHandle.End, slot: PushSlot
    ) -> CurlConnectionMachine.RequestEnd {
        unknown(slot)
        switch end.code.cause {
        case .timeout:
            counts.timeouts &+= 1
            return .timedOut
        case .streamReset: return .reset
        case .none, .connect, .certificate, .connectionLost, .other:
            // GOAWAY may have left it out, or the connection may have broken: both look the same.
            let isEnded = connections[index].multi.wantedAnotherConnection
            lost(index, isEnded ? "ended by the server" : errorText(index, end))
            return .lost
        }
    }

    /// It was never given to a connection: the connect failed, or libcurl wanted another
    /// connection than the one it had.
    private mutating func notSent(_ index: Int, _ end: MultiHandle.End, slot: PushSlot) {
        let pool = connections[index].pool
        sendAgain(slot, pool: pool)
        guard !connections[index].multi.isEstablished else { return }
        counts.connectFailures &+= 1
        pools[pool].connectFailed(at: now.monotonic, random: &random)
        let isCertificate = end.code.cause == .certificate
        if isCertificate { counts.certificatesRefused &+= 1 }
        pools[pool].log.write(
            isCertificate ? .certificateRefused : .connectFailed, .error,
            "cannot connect: \(errorText(index, end))",
            remedy: isCertificate
                ? "install current ca-certificates, or set the endpoint's CA file"
                : "check the endpoint's host, the DNS, and that it is an APNs endpoint",
            at: now.monotonic)
    }

    private mutating func http2Refused(_ pool: Int) {
        counts.http2Refused &+= 1
        pools[pool].connectFailed(at: now.monotonic, random: &random)
        pools[pool].log.write(
            .http2Refused, .error, "the server does not speak HTTP/2 (ALPN)",
            remedy: "is there a TLS-inspecting proxy on the way to APNs?", at: now.monotonic)
    }

    /// The connection broke: told once, however many requests were on it.
    private mutating func lost(_ index: Int, _ why: String) {
        guard connections[index].machine.isWanted else { return }
        counts.connectionsLost &+= 1
        noteLoss(index, why)
        connections[index].machine.retired()
    }

    /// What has become visible of the connection itself.
    private mutating func noteConnection(_ index: Int) {
        let pool = connections[index].pool
        if connections[index].multi.isEstablished, !connections[index].wasCounted {
            connections[index].wasCounted = true
            counts.connects &+= 1
        }
        if connections[index].machine.isWanted, connections[index].multi.wantedAnotherConnection {
            connections[index].machine.retired()
            pools[pool].log.write(
                .goAway, .info, "the server ended the connection", at: now.monotonic)
        }
        guard connections[index].machine.isDead else { return }
        counts.connectionsLost &+= 1
        noteLoss(index, "requests time out and nothing is answered")
        abandon(index)
    }

    private mutating func noteLoss(_ index: Int, _ why: String) {
        let pool = connections[index].pool
        // A server that takes connections and nothing else must not be hammered.
        if !connections[index].wasWelcomed {
            pools[pool].connectFailed(at: now.monotonic, random: &random)
        }
        let inFlight = connections[index].machine.requestsInFlight
        pools[pool].log.write(
            .lost, .warning, "connection lost with \(inFlight) in flight: \(why)",
            at: now.monotonic)
    }

    mutating func unknown(_ slot: PushSlot) {
        outcomes.append(
            PushOutcome(slot: slot, kind: .unknown, sentAt: places[Int(slot)].since))
    }

    private func errorText(_ index: Int, _ end: MultiHandle.End) -> String {
        let text = connections[index][end.position].pointee.errorText
        return text.isEmpty ? end.code.description : text
    }

    private mutating func renewToken(of pool: Int) {
        guard let token = pools[pool].token else { return }
        // An error here comes again, and is logged, when the next push wants a token.
        let decision = try? pools[pool].settings.providerTokens.refused(token, now: now)
        guard decision == .tooEarly else { return }
        pools[pool].log.write(
            .providerToken, .error,
            "APNs calls a provider token expired that is younger than 20 minutes",
            remedy: "set this machine's clock (NTP)", at: now.monotonic)
    }

    /// Zero filled, and cut at a character if it is too long.
    private func keep(_ reason: String, for slot: PushSlot) {
        let room = UnsafeMutableBufferPointer(start: slab.reason(slot), count: PushSlab.reasonBytes)
        room.update(repeating: 0)
        var used = 0
        for character in reason {
            let bytes = character.utf8
            if used + bytes.count > room.count { break }
            for byte in bytes {
                room[used] = byte
                used += 1
            }
        }
    }
}
