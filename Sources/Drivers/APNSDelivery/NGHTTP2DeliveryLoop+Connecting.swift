// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import Nghttp2
internal import OpenSSL
internal import PushModel

/// The life cycle of connections: name look-up, TCP, TLS, established, gone.
extension NGHTTP2DeliveryLoop {
    /// The most addresses of a host tried for one connection.
    private static let addressesMax = 4

    mutating func connectWhereNeeded() {
        guard core.phase == .running else { return }
        for pool in core.pools.indices
        where core.pools[pool].wantsConnections(at: core.now.monotonic) {
            var missing = core.pools[pool].sizing.wanted
            for index in core.pools[pool].connections where connections[index].machine.isWanted {
                missing -= 1
            }
            for index in core.pools[pool].connections where missing > 0 {
                guard core.now.monotonic >= core.pools[pool].connectAt else { break }
                guard connections[index].stage == .vacant else { continue }
                if let later = core.budget.take(at: core.now.monotonic) {
                    core.pools[pool].connectAt = later
                    break
                }
                connect(index)
                missing -= 1
            }
        }
    }

    private mutating func connect(_ index: Int) {
        let settings = core.pools[connections[index].pool].settings
        let health = core.presumption(ofPool: connections[index].pool, connections)
        connections[index].begin(
            limits: settings.limits, at: core.now.monotonic,
            jitter: Double(core.random.next(below: 1001)) / 1000)
        connections[index].health = health
        lookupsOwed += 1
        resolver.resolve(
            host: settings.host, port: settings.port,
            tag: UInt64(index) << 32 | UInt64(connections[index].attempt))
    }

    mutating func resolved(_ answer: Resolver.Answer) {
        precondition(lookupsOwed > 0, "the resolver gives one answer for each lookup")
        lookupsOwed -= 1
        let index = Int(answer.tag >> 32)
        precondition(
            connections.indices.contains(index),
            "the resolver's answer names a connection that there is")
        guard connections[index].stage == .resolving,
            connections[index].attempt == UInt32(truncatingIfNeeded: answer.tag)
        else { return }
        let pool = connections[index].pool
        do {
            let addresses = core.pools[pool].turn(
                try answer.result.get(), at: core.now.monotonic)
            connections[index].otherAddresses = addresses.prefix(Self.addressesMax)
            connectToNextAddress(index)
        } catch {
            connectFailed(
                index, error.description, remedy: "check the endpoint's host and the DNS")
        }
    }

    private mutating func connectToNextAddress(_ index: Int) {
        while let address = connections[index].otherAddresses.popFirst() {
            do {
                return try open(index, address)
            } catch {
                connections[index].unreachable.append("\(address): \(error)")
            }
        }
        connectFailed(index, connections[index].unreachable.joined(separator: "; "))
    }

    /// Gives up an unreachable address. The next one is tried within the same connect if the
    /// process's connect budget allows it now.
    private mutating func addressFailed(_ index: Int, _ why: String) {
        if !connections[index].otherAddresses.isEmpty,
            core.budget.take(at: core.now.monotonic) != nil
        {
            connections[index].otherAddresses = []
        }
        giveUpAddress(index, why)
    }

    /// Moves on to the next address because this one has not answered in time. While the connect
    /// budget is spent, this one is given more time.
    mutating func addressIsLate(_ index: Int) {
        assert(
            connections[index].stage == .connecting,
            "only an address that is being tried can be late")
        if let later = core.budget.take(at: core.now.monotonic) {
            connections[index].nextAddressAt = later
        } else {
            giveUpAddress(index, "no answer yet")
        }
    }

    private mutating func giveUpAddress(_ index: Int, _ why: String) {
        connections[index].unreachable.append("\(connections[index].address!): \(why)")
        dropLink(index)
        connectToNextAddress(index)
    }

    private mutating func open(_ index: Int, _ address: SocketAddress) throws {
        let pool = connections[index].pool
        precondition(
            connections[index].link == nil, "a connection is made only where there is none")
        let context = try core.pools[pool].trust(at: core.now.monotonic)
        let socket = try Socket.connecting(to: address)
        try core.epoll.add(socket.descriptor, for: .write, tag: UInt64(index))
        let tls = TLSStream(
            context: context, descriptor: socket.descriptor,
            serverName: core.pools[pool].settings.serverName)
        connections[index].link = PushConnection.Link(
            socket: socket, tls: tls, session: ClientSession(), interest: .write)
        connections[index].address = address
        connections[index].nextAddressAt =
            connections[index].otherAddresses.isEmpty
            ? .distantFuture
            : core.now.monotonic
                + core.pools[pool].settings.limits.connectTimeout / Self.addressesMax
        connections[index].headers = RequestHeaders(
            constants: constants,
            isForBroadcasts: core.pools[pool].settings.isForBroadcasts)
        connections[index].stage = .connecting
    }

    /// Handles an event that epoll reports on the connection.
    mutating func ready(_ index: Int, _ event: Epoll.Event) {
        precondition(
            connections.indices.contains(index), "epoll names only connections that there are")
        switch connections[index].stage {
        case .vacant, .resolving: break
        case .connecting:
            if let error = connections[index].pendingError() {
                addressFailed(index, "\(error)")
            } else {
                connections[index].stage = .handshaking
                shakeHands(index)
            }
        case .handshaking: shakeHands(index)
        case .established:
            // Writability needs no handling: every turn ends with a flush.
            if event.isReadable { read(index) }
        }
    }

    private mutating func shakeHands(_ index: Int) {
        switch connections[index].link!.tls.handshake() {
        case .done: established(index)
        case .wantsRead: watch(index, for: .read)
        case .wantsWrite: watch(index, for: .write)
        case .failed(let error):
            guard error.verification != nil else {
                return connectFailed(
                    index, "TLS: \(error)",
                    remedy: "check that the endpoint is APNs, not a proxy or an HTTP/1.1 server")
            }
            core.count(\.certificatesRefused, of: connections[index].pool)
            connectFailed(
                index, "TLS: \(error)", kind: .certificateRefused,
                remedy: CertificateAdvice.remedy(verifyResult: error.verifyResult))
        }
    }

    private mutating func established(_ index: Int) {
        assert(
            connections[index].stage == .handshaking,
            "a connection is established only by its handshake")
        guard connections[index].link!.tls.negotiatedProtocol == "h2" else {
            core.count(\.http2Refused, of: connections[index].pool)
            return connectFailed(
                index, "the server does not speak HTTP/2 (ALPN)", kind: .http2Refused,
                remedy: "check for a TLS-inspecting proxy between here and APNs")
        }
        core.count(\.connects, of: connections[index].pool)
        core.port.counters.connected(
            after: core.now.monotonic - connections[index].machine.startedAt)
        connections[index].stage = .established
        connections[index].machine.connected(at: core.now.monotonic)
        core.pools[connections[index].pool].log.write(
            .connected, .info, "connected",
            [
                "address": "\(connections[index].address!)",
                "tls": "\(connections[index].link!.tls.version)",
            ], at: core.now.monotonic)
        watch(index, for: .read)
        // The server may have sent its SETTINGS with the end of the handshake.
        read(index)
    }

    mutating func watch(_ index: Int, for interest: Epoll.Interest) {
        guard connections[index].link!.interest != interest else { return }
        connections[index].link!.interest = interest
        do {
            try core.epoll.modify(connections[index].descriptor, for: interest, tag: UInt64(index))
        } catch {
            // This fails only for lack of kernel memory, and no event of the connection would come
            // again.
            lost(index, error.description)
        }
    }

    // MARK: Ends

    /// Ends a connection that was never established. The next connect waits, with jitter.
    mutating func connectFailed(
        _ index: Int, _ text: String, kind: ConnectionLog.Kind = .connectFailed,
        remedy: String = "check that this machine may reach the endpoint (firewall, apns.proxy)"
    ) {
        let pool = connections[index].pool
        assert(
            connections[index].stage != .established,
            "only a connection that is not established yet can fail to connect")
        core.count(\.connectFailures, of: pool)
        core.holdBackConnects(of: pool, because: text)
        core.pools[pool].log.write(
            kind, .error, "cannot connect", ["cause": "\(text)"], remedy: remedy,
            at: core.now.monotonic)
        vacate(index)
    }

    /// Handles the loss of an established connection. Pushes that were provably not processed are
    /// sent again; the fate of the others is unknown.
    mutating func lost(_ index: Int, _ why: String) {
        let pool = connections[index].pool
        guard connections[index].stage == .established else {
            return connectFailed(index, why)
        }
        let inFlight = connections[index].inFlight.count
        if inFlight > 0 {
            core.count(\.connectionsLost, of: pool)
            core.pools[pool].log.write(
                .lost, .warning, "connection lost",
                ["inFlight": "\(inFlight)", "cause": "\(why)"], at: core.now.monotonic)
        }
        giveBackInFlight(index)
        if inFlight > 0 { core.lostConnection(index, of: connections) }
        // A server that accepts connections but never a push must not be hammered.
        if !connections[index].isAuthenticated {
            core.holdBackConnects(of: pool, hasReachedAPNs: true)
            if inFlight == 0 {
                core.pools[pool].log.write(
                    .lost, .warning, "connection lost before its first answer",
                    ["cause": "\(why)"], at: core.now.monotonic)
            }
        }
        vacate(index)
    }

    private mutating func giveBackInFlight(_ index: Int) {
        let pool = connections[index].pool
        core.pools[pool].returned(connections[index].inFlight.count)
        // The newest comes first, since each push that is sent again goes to the head of the queue.
        while let slot = connections[index].inFlight.popLast(core.states) {
            if connections[index].wasNeverSent(streams + Int(slot)) {
                sendAgain(slot, pool: pool)
            } else {
                leftOpen(slot, index)
            }
        }
    }

    /// Ends a connection without requests in an orderly way.
    mutating func leave(_ index: Int) {
        if connections[index].stage == .established {
            connections[index].link!.session.goAway()
            // An error is ignored: the server then learns it from the closed connection.
            _ = try? connections[index].flush(partly: true, bytes: &core.counts.bytesSent)
            connections[index].link!.tls.close()
            // Nothing was ever accepted on it, so an immediate successor would fare no better.
            if !connections[index].isAuthenticated {
                let pool = connections[index].pool
                core.holdBackConnects(of: pool, hasReachedAPNs: true)
            }
        }
        vacate(index)
    }

    private mutating func vacate(_ index: Int) {
        precondition(
            connections[index].inFlight.isEmpty,
            "a place is vacated only when its pushes have their outcomes")
        dropLink(index)
        connections[index].machine.closed()
        connections[index].hasMoreToRead = false
        connections[index].stage = .vacant
    }

    private mutating func dropLink(_ index: Int) {
        guard connections[index].link != nil else { return }
        // Closing the only descriptor of a socket removes it from the set as well.
        try? core.epoll.remove(connections[index].descriptor)
        connections[index].link = nil
        connections[index].headers = nil
    }
}
