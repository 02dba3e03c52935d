// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
internal import Logging
internal import OpenSSL
internal import PushModel

/// Turns the ends of libcurl's transfers into outcomes. The status decides, not libcurl's result
/// code: with HTTP/2, libcurl 7.88 reports some cut-off answers as complete and some complete ones
/// as incomplete.
extension CurlDeliveryLoop {
    mutating func endRequests() {
        for index in connections.indices where !connections[index].ends.isEmpty {
            connections[index].progressAt = core.now.monotonic
            for end in connections[index].takeEnds() { ended(index, end) }
            noteConnection(index)
        }
    }

    private mutating func ended(_ index: Int, _ end: MultiHandle.End) {
        let easy = connections[index][end.position]
        let pool = connections[index].pool
        let slot = easy.pointee.tag
        assert(Int(slot) < core.slab.slots, "a request ends under a slot of the slab")
        let status = easy.pointee.status
        let isAnswered = status == 200 || (status > 200 && end.code == .ok)
        let requestEnd: CurlConnectionMachine.RequestEnd
        if isAnswered, !easy.pointee.isHTTP2 {
            // This is not APNs, so the fate of the push is unknown.
            requestEnd = .lost
            core.unknown(slot)
            http2Refused(pool)
        } else if isAnswered {
            let isAuthenticated = answered(index, end.position, slot: slot, status: status)
            requestEnd = isAuthenticated ? .authenticated : .forbidden
        } else if easy.pointee.wasDispatched {
            requestEnd = unanswered(index, end, slot: slot)
        } else {
            requestEnd = .lost
            notSent(index, end, slot: slot)
        }
        if !connections[index].wasCounted, let time = easy.pointee.connectTime {
            core.port.counters.connected(after: time)
        }
        connections[index].release(end.position)
        core.pools[pool].returned(1)
        connections[index].machine.requestEnded(
            requestEnd, bytes: Int(core.slab.push(slot).pointee.bodyBytes), at: core.now.monotonic)
    }

    /// - Returns: whether APNs has accepted the provider token.
    private mutating func answered(
        _ index: Int, _ position: Int, slot: PushSlot, status: UInt16
    ) -> Bool {
        let pool = connections[index].pool
        guard status != 200 else {
            noteAuthentication(index)
            connections[index].health.succeeded(1, at: core.now.monotonic)
            core.noteAnswerTime(of: slot, pool: pool)
            core.accepted(slot)
            return true
        }
        let body = connections[index][position].pointee.withAnswer {
            AnswerBody($0, parser: &core.parser)
        }
        let effect = core.rejected(
            slot, status: status,
            retryAfterSeconds: connections[index][position].pointee.retryAfterSeconds, body,
            on: index, of: connections)
        connections[index].health.succeeded(effect.isFailure ? 0 : 1, at: core.now.monotonic)
        if effect.isAuthenticated { noteAuthentication(index) }
        if effect.isToLeave {
            if !connections[index].isAuthenticated {
                core.holdBackConnects(of: pool, hasReachedAPNs: true)
            }
            connections[index].machine.retired()
        }
        return effect.isAuthenticated
    }

    private mutating func noteAuthentication(_ index: Int) {
        guard !connections[index].isAuthenticated else { return }
        connections[index].isAuthenticated = true
        core.pools[connections[index].pool].authenticated()
    }

    /// Ends a push that was sent but not answered: its fate is unknown.
    private mutating func unanswered(
        _ index: Int, _ end: MultiHandle.End, slot: PushSlot
    ) -> CurlConnectionMachine.RequestEnd {
        let isOutlier = core.failed(.fault, slot, on: index, of: connections)
        core.unknown(slot, isOutlier: isOutlier)
        switch end.code.cause {
        case .timeout:
            core.counts.timeouts &+= 1
            return .timedOut
        case .streamReset:
            core.counts.resets &+= 1
            return .reset
        case .none, .connect, .certificate, .connectionLost, .other:
            // A GOAWAY that excludes this request and a broken connection look the same here.
            let isEnded = connections[index].multi.wantedAnotherConnection
            lost(index, isEnded ? "ended by the server" : errorText(index, end))
            return .lost
        }
    }

    /// Sends a push again that was never put on a connection: the connect failed, or libcurl wanted
    /// a new connection because the server had ended this one.
    private mutating func notSent(_ index: Int, _ end: MultiHandle.End, slot: PushSlot) {
        let pool = connections[index].pool
        sendAgain(slot, pool: pool)
        guard !connections[index].multi.isEstablished else { return }
        core.count(\.connectFailures, of: pool)
        let why = errorText(index, end)
        core.holdBackConnects(of: pool, because: why)
        let isCertificate = end.code.cause == .certificate
        if isCertificate { core.count(\.certificatesRefused, of: pool) }
        core.pools[pool].log.write(
            isCertificate ? .certificateRefused : .connectFailed, .error,
            "cannot connect", ["cause": "\(why)"],
            remedy: isCertificate
                ? certificateRemedy(index, end) : connectRemedy(index, end),
            at: core.now.monotonic)
    }

    private func certificateRemedy(_ index: Int, _ end: MultiHandle.End) -> String {
        end.code == .unreadableCAFile
            ? CertificateAdvice.unreadableCAFile
            : CertificateAdvice.remedy(
                connections[index][end.position].pointee.certificateFault)
    }

    private func connectRemedy(_ index: Int, _ end: MultiHandle.End) -> String {
        let endpoint = "check the endpoint's host, the DNS, and that it is an APNs endpoint"
        guard let proxy = connections[index].proxyAddress else { return endpoint }
        let status = connections[index][end.position].pointee.proxyStatus
        return switch status {
        case 0: "check that the HTTP proxy at \(proxy) runs and that apns.proxy names it"
        case 200..<300: "the proxy at \(proxy) opened the tunnel; behind it, \(endpoint)"
        // The correct status is 407, but tinyproxy answers 401 to wrong credentials.
        case 401, 407:
            "set apns.proxy to a user and password that the proxy at \(proxy) accepts"
        default:
            "the proxy at \(proxy) answers \(status): check that it allows CONNECT to the "
                + "endpoint's host and port, and can reach them"
        }
    }

    private mutating func http2Refused(_ pool: Int) {
        let why = "the server does not speak HTTP/2 (ALPN)"
        core.count(\.http2Refused, of: pool)
        core.holdBackConnects(of: pool, because: why)
        core.pools[pool].log.write(
            .http2Refused, .error, "cannot connect", ["cause": "\(why)"],
            remedy: "check for a TLS-inspecting proxy between here and APNs",
            at: core.now.monotonic)
    }

    /// Notes that the connection broke: once, however many requests were on it.
    private mutating func lost(_ index: Int, _ why: String) {
        guard connections[index].machine.isWanted else { return }
        core.count(\.connectionsLost, of: connections[index].pool)
        noteLoss(index, why)
        core.lostConnection(index, of: connections)
        connections[index].machine.retired()
    }

    /// Records what the ended requests reveal about the connection itself.
    private mutating func noteConnection(_ index: Int) {
        let pool = connections[index].pool
        if connections[index].multi.isEstablished, !connections[index].wasCounted {
            connections[index].wasCounted = true
            core.count(\.connects, of: pool)
        }
        if connections[index].machine.isWanted, connections[index].multi.wantedAnotherConnection {
            connections[index].machine.retired()
            core.pools[pool].log.write(
                .goAway, .info, "the server ended the connection", at: core.now.monotonic)
        }
        guard connections[index].machine.isDead else { return }
        core.count(\.connectionsLost, of: connections[index].pool)
        noteLoss(index, "requests time out and nothing is answered")
        core.lostConnection(index, of: connections)
        abandon(index)
    }

    private mutating func noteLoss(_ index: Int, _ why: String) {
        let pool = connections[index].pool
        // A server that accepts connections but never a push must not be hammered.
        if !connections[index].isAuthenticated {
            if connections[index].multi.isEstablished {
                core.holdBackConnects(of: pool, hasReachedAPNs: true)
            } else {
                core.holdBackConnects(of: pool, because: why)
            }
        }
        let inFlight = connections[index].machine.requestsInFlight
        core.pools[pool].log.write(
            .lost, .warning, "connection lost", ["inFlight": "\(inFlight)", "cause": "\(why)"],
            at: core.now.monotonic)
    }

    private func errorText(_ index: Int, _ end: MultiHandle.End) -> String {
        let text = connections[index][end.position].pointee.errorText
        return text.isEmpty ? end.code.description : TLSError.sentence(of: text)
    }
}
