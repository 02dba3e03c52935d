// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Foundation
internal import PushModel

/// A device's way to the registrar: it sends a request until it is acknowledged, by the rules that
/// docs/clients.md has for a client.
final class RegistrarLine {
    struct Settings: Sendable {
        /// Without a slash at its end.
        var registrar: String
        var key: String
        var app: String
        var environment: String
        var caFile: String?
        /// How long a request may be tried.
        var patience = Duration.seconds(60)
    }

    enum Result: Equatable {
        /// - Parameter sequence: the one that it was acknowledged with.
        case acknowledged(sequence: Int64)
        case refused(status: Int, String)
        case gaveUp
    }

    private let settings: Settings
    private let conversation = HTTPConversation()
    private(set) var retries = 0

    init(_ settings: Settings) { self.settings = settings }

    private struct Body: Decodable {
        var storedSequence: Int64?
        var detail: String?
    }

    func send(_ request: Device.Request, of installation: String, sequence: Int64) -> Result {
        let deadline = ContinuousClock.now + settings.patience
        var sequence = sequence
        while ContinuousClock.now < deadline {
            var wait = Duration.milliseconds(200)
            if let answer = try? conversation.perform(exchange(request, installation, sequence)) {
                switch answer.status {
                case 200, 204: return .acknowledged(sequence: sequence)
                case 409:
                    let body = try? JSONDecoder().decode(Body.self, from: Data(answer.body))
                    guard let stored = body?.storedSequence else {
                        return .refused(status: 409, body?.detail ?? "")
                    }
                    sequence = stored + 1
                    retries += 1
                    continue
                case 429, 500...599:
                    wait = min(.seconds(2), max(wait, answer.retryAfter))
                default:
                    let body = try? JSONDecoder().decode(Body.self, from: Data(answer.body))
                    return .refused(status: Int(answer.status), body?.detail ?? "")
                }
            }
            retries += 1
            Thread.sleep(forTimeInterval: wait / .seconds(1))
        }
        return .gaveUp
    }

    /// What is registered of an installation, in the form of `Device.registered` with token IDs in
    /// place of tokens; nil if the registrar does not say.
    func registered(of installation: String) -> [String: Set<String>]? {
        let get = Device.Request(method: "GET", path: "", members: nil)
        for _ in 0..<20 {
            if let answer = try? conversation.perform(exchange(get, installation, 0)),
                answer.status == 200,
                let list = try? JSONDecoder().decode(Registrations.self, from: Data(answer.body))
            {
                return list.byHandler
            }
            Thread.sleep(forTimeInterval: 0.3)
        }
        return nil
    }

    private func exchange(
        _ request: Device.Request, _ installation: String, _ sequence: Int64
    ) -> HTTPExchange {
        let base = "/v1/apps/\(settings.app)/environments/\(settings.environment)/installations/"
        var exchange = HTTPExchange(
            url: settings.registrar + base + installation + request.path)
        exchange.method = request.method
        exchange.headers = [("authorization", "Bearer \(settings.key)"), ("expect", "")]
        exchange.caFile = settings.caFile
        exchange.answerBytesMax = 1 << 20
        if let members = request.members {
            exchange.headers.append(("content-type", "application/json"))
            let body = JSONText.object([("sequence", .literal("\(sequence)"))] + members)
            exchange.body = Array(body.line.utf8)
        }
        return exchange
    }

    private struct Registrations: Decodable {
        struct Handler: Decodable {
            var handler: String
            var targets: [Target]
        }
        struct Target: Decodable {
            var tokenID: String?
            var shows: [Show]?
        }
        struct Show: Decodable {
            var subjects: [String]?
        }
        var handlers: [Handler]

        var byHandler: [String: Set<String>] {
            var result: [String: Set<String>] = [:]
            for handler in handlers {
                for target in handler.targets {
                    for subject in (target.shows ?? []).flatMap({ $0.subjects ?? [] }) {
                        result[handler.handler, default: []].insert(
                            "\(target.tokenID ?? "-") \(subject)")
                    }
                }
            }
            return result
        }
    }
}
