// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import Nghttp2
internal import PushModel

extension SimulatorLoop {
    /// Decides the answer to every complete request.
    func answerEnded(of connection: SimulatorConnection) {
        let openRequests = connection.openRequests
        for request in openRequests.ended { decide(request, of: connection) }
        openRequests.forgetEnded()
    }

    private func decide(_ request: Int, of connection: SimulatorConnection) {
        let openRequests = connection.openRequests
        assert(openRequests.requests[request].isOpen, "a request is answered while it is open")
        widen(connection)
        guard !turn.isStalled else {
            turn.counts.unanswered += 1
            return
        }
        let environment = connection.accepted.environment
        let now = SystemClock.wallNanoseconds()
        let judged = judge.answer(
            openRequests.requests[request], environment: environment, now: now)
        var answer = judged.answer
        if judged.isUnremembered { turn.counts.tokensUnremembered += 1 }
        // The script is for pushes: what is done with channels has been done.
        if answer.status == 200, openRequests.requests[request].isPush,
            let scripted = judge.script.next(
                token: openRequests.requests[request].token, on: connection.accepted.number,
                to: connection.accepted.address, now: turn.now)
        {
            guard let dictated = scripted.answer(wallMilliseconds: now / 1_000_000) else {
                turn.counts.unanswered += 1
                if case .reset(let code) = scripted {
                    connection.session.reset(
                        stream: openRequests.requests[request].stream, errorCode: code)
                }
                return
            }
            answer = dictated
        }
        decided(answer, on: request, of: connection, wallNanoseconds: now)
    }

    /// Logs the answer and sends it, at once or after the delay.
    private func decided(
        _ answer: SimulatedAnswer, on request: Int, of connection: SimulatorConnection,
        wallNanoseconds now: Int64
    ) {
        if connection.openRequests.requests[request].isPush {
            if answer.status == 200 {
                turn.counts.accepted += 1
            } else {
                turn.counts.rejected += 1
            }
        }
        log?.append(
            wallNanoseconds: now, connection: connection.accepted.number,
            environment: connection.accepted.environment.logName,
            request: connection.openRequests.requests[request], answer: answer)
        record(answer, on: request, of: connection)
        let delay = turn.nextDelay()
        guard delay > 0 else { return send(answer, on: request, of: connection) }
        if delayed.isCrowded { delayed.purge(keeping: isAwaited) }
        delayed.append(
            DelayedAnswer(
                due: SystemClock.monotonicNanoseconds() + delay, connection: connection.tag,
                request: request, serial: connection.openRequests.requests[request].serial,
                answer: answer))
    }

    private func send(
        _ answer: SimulatedAnswer, on request: Int, of connection: SimulatorConnection
    ) {
        headers.removeAll()
        headers.append(status: answer.status)
        let name: StaticString =
            if case .devices = connection.openRequests.requests[request].service { "apns-id" } else
            {
                "apns-request-id"
            }
        connection.openRequests.requests[request].apnsID.withUnsafeBytes {
            headers.append(name, $0, indexed: false)
        }
        if let channelID = answer.channelID {
            Array(channelID.utf8).withUnsafeBytes {
                headers.append("apns-channel-id", $0, indexed: false)
            }
        }
        if connection.accepted.environment == .development {
            turn.newUUID().withUnsafeBytes {
                headers.append("apns-unique-id", $0, indexed: false)
            }
        }
        if let seconds = answer.retryAfterSeconds {
            Array("\(seconds)".utf8).withUnsafeBytes {
                headers.append("retry-after", $0, indexed: false)
            }
        }
        let body = answer.body
        if !body.isEmpty {
            headers.append(
                "content-type", answer.form == .html ? "text/html" : "application/json")
        }
        connection.session.respond(
            stream: connection.openRequests.requests[request].stream, headers, body: body)
        if answer == .idleTimeout { leave(connection, reason: answer.reason) }
    }

    /// Sends GOAWAY; open requests are still answered.
    private func leave(_ connection: SimulatorConnection, reason: String) {
        connection.goAway(
            lastStream: connection.session.lastStream, debugData: Self.goAwayData(reason))
    }

    private func isAwaited(_ answer: DelayedAnswer) -> Bool {
        connections[answer.connection]?.openRequests.isOpen(answer.request, serial: answer.serial)
            ?? false
    }

    func sendDelayed(until now: Int64) {
        var touched: Set<UInt64> = []
        while let next = delayed.next(until: now) {
            guard let connection = connections[next.connection], isAwaited(next) else { continue }
            send(next.answer, on: next.request, of: connection)
            touched.insert(next.connection)
        }
        for tag in touched {
            guard let connection = connections[tag] else { continue }
            connection.write()
            updateInterest(connection)
        }
    }

    /// Raises the stream limit of a connection after its first valid provider token.
    private func widen(_ connection: SimulatorConnection) {
        guard !connection.isWidened, connection.openRequests.credential.key != nil else { return }
        connection.isWidened = true
        connection.openRequests.streamLimit = turn.streamLimit
        connection.session.announce(streamLimit: turn.streamLimit)
    }

    private func record(
        _ answer: SimulatedAnswer, on request: Int, of connection: SimulatorConnection
    ) {
        guard shared.recorder.isOn else { return }
        let whole = connection.openRequests.requests[request]
        shared.recorder.record(
            RecordedRequest(
                connection: connection.accepted.number,
                environment: connection.accepted.environment.name, headers: whole.headers,
                body: whole.body, answer: answer))
    }
}

extension PushEnvironment {
    /// `name` as a static string, which the log appends without a copy.
    var logName: StaticString {
        switch self {
        case .production: "production"
        case .development: "development"
        }
    }
}
