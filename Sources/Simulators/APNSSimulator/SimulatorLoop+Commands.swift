// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Nghttp2
internal import PushModel

extension SimulatorLoop {
    func carryOut(_ command: SimulatorCommand) {
        switch command {
        case .goAway(let reason, let streamsBelow):
            let debugData = reason.map(Self.goAwayData) ?? []
            onEach { connection in
                // A client's streams have odd numbers, so each is 2 apart.
                let last = Int(connection.session.lastStream) - 2 * streamsBelow
                connection.goAway(lastStream: Int32(max(0, last)), debugData: debugData)
            }
        case .resetConnections: onEach { $0.reset() }
        case .resetStreams(let code):
            onEach { connection in
                for request in connection.openRequests.requests where request.isOpen {
                    connection.session.reset(stream: request.stream, errorCode: code)
                }
            }
        case .blackHole(let isBlackHole):
            turn.isBlackHole = isBlackHole
            // `onEach` updates what epoll watches: nothing, or everything again.
            onEach { _ in }
        case .streamLimit(let limit):
            turn.streamLimit = max(0, limit)
            onEach { connection in
                guard connection.isWidened else { return }
                connection.openRequests.streamLimit = turn.streamLimit
                connection.session.announce(streamLimit: turn.streamLimit)
            }
        default: set(command)
        }
    }

    /// Carries out a command that only changes how future requests are handled.
    private func set(_ command: SimulatorCommand) {
        switch command {
        case .idleMax(let time): turn.idleMax = time.nanoseconds
        case .stall(let isStalled): turn.isStalled = isStalled
        case .refuseStreams(let count): turn.refuseStreams(count)
        case .delay(let delay): turn.delay = delay
        case .rules(let rules): judge.script = Script(rules, now: turn.now)
        case .addRule(let rule): judge.script.append(rule, now: turn.now)
        case .providerTokenAgeMax(let time):
            judge.credentialLimits.ageMax = time.components.seconds
        case .providerTokenUpdateMin(let time):
            judge.credentialLimits.updateMin = time.components.seconds
        case .providerTokenClockSkewMax(let time):
            judge.credentialLimits.clockSkewMax = time.components.seconds
        case .acceptKey(let keyID, true): judge.credentialLimits.keysRefused.remove(keyID)
        case .acceptKey(let keyID, false): judge.credentialLimits.keysRefused.insert(keyID)
        case .judgeTokenTopic(let isOn): judge.judgesTokenTopic = isOn
        case .judgeTokenEnvironment(let isOn): judge.judgesTokenEnvironment = isOn
        case .deviceTokenBytes(let range): judge.tokenBytes = range
        // `APNSSimulator` has carried these out, on the book that all threads share.
        case .deviceTokenGapMin, .assignToken: break
        case .goAway, .resetConnections, .resetStreams, .blackHole, .streamLimit, .stop:
            preconditionFailure(
                "this command is carried out elsewhere and does not come here: \(command)")
        }
    }

    /// The debug data of a GOAWAY in Apple's form.
    static func goAwayData(_ reason: String) -> [UInt8] { Array(#"{"reason":"\#(reason)"}"#.utf8) }

    private func onEach(_ body: (SimulatorConnection) -> Void) {
        for connection in connections.values {
            body(connection)
            if !turn.isBlackHole { connection.write() }
            updateInterest(connection)
        }
    }
}
