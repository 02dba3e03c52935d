// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSDelivery
import Configuration
import Curl
import Delivery
import Entrypoint
import Foundation
import PushModel
import Worker

/// One request to Apple's channel management ("Sending channel management requests to APNs"), signed
/// and sent as the configuration says.
struct ChannelRequest {
    enum Action {
        /// - Parameter storesLatest: whether APNs stores the latest broadcast, for devices that are
        ///   out of reach.
        case create(storesLatest: Bool)
        case read(ChannelID)
        case list
        case delete(ChannelID)
    }

    private let app: String
    private let environment: PushEnvironment
    private let place: String
    private var exchange: HTTPExchange

    /// - Parameter credential: the name of the credential that signs; nil for that of the app.
    init(
        _ action: Action, app: String, environment: PushEnvironment, credential: String?,
        _ apns: Configuration.APNS
    ) throws {
        self.app = app
        self.environment = environment
        let endpoint = apns.channelEndpoints[environment]
        place = "\(endpoint.host):\(endpoint.port)"
        let name = endpoint.serverName ?? endpoint.host
        let path: String
        var headers: [(name: String, value: String)] = []
        var body: [UInt8]?
        var method: String?
        switch action {
        case .create(let storesLatest):
            path = "channels"
            body = Array(
                #"{"message-storage-policy":\#(storesLatest ? 1 : 0),"push-type":"LiveActivity"}"#
                    .utf8)
            headers.append(("content-type", "application/json"))
        case .read(let channel):
            path = "channels"
            headers.append(("apns-channel-id", channel.base64))
        case .list: path = "all-channels"
        case .delete(let channel):
            path = "channels"
            method = "DELETE"
            headers.append(("apns-channel-id", channel.base64))
        }
        let host = name.contains(":") ? "[\(name)]" : name
        exchange = HTTPExchange(url: "https://\(host)/1/apps/\(app)/\(path)")
        exchange.method = method
        exchange.body = body
        exchange.address = (endpoint.host, UInt16(endpoint.port))
        exchange.caFile = apns.caFile(for: endpoint)
        exchange.proxy = apns.proxy.flatMap { HTTPProxy($0.text) }
        exchange.offersHTTP2 = true
        // 10,000 channels, each with its quotes and its comma.
        exchange.answerBytesMax = 4 << 20
        exchange.connectTimeout = apns.limits.connectTimeout
        exchange.timeout = .seconds(20)
        exchange.keptHeader = "apns-channel-id"
        let bearer = try Self.bearer(app, environment, credential, apns)
        exchange.headers =
            headers + [
                ("authorization", bearer), ("apns-request-id", UUID().uuidString.lowercased()),
            ]
    }

    private static func bearer(
        _ app: String, _ environment: PushEnvironment, _ named: String?, _ apns: Configuration.APNS
    ) throws -> String {
        let name: String
        if let named {
            guard let credential = apns.credentials[named],
                credential.environments.contains(environment)
            else {
                throw Failure(
                    .configuration,
                    "no credential '\(named)' is for \(environment.name): see apns.credentials")
            }
            name = named
        } else {
            guard let found = apns.credential(for: app, in: environment) else {
                throw Failure(
                    .configuration,
                    "no credential serves \(app) in \(environment.name): see apns.credentials")
            }
            name = found.name
        }
        let token = try SigningKeys(apns)[name, environment].current(now: RecordWriter.now())
        return String(decoding: token.bearer, as: UTF8.self)
    }

    /// Sends it. Blocks until the answer.
    /// - Throws: `Failure` where nobody answers, `ChannelRefusal` where APNs refuses.
    func perform() throws -> HTTPExchange.Answer {
        let answer: HTTPExchange.Answer
        do throws(ExchangeFailure) {
            answer = try exchange.perform()
        } catch {
            throw Failure(
                .unavailable,
                "\(place): \(error.text.printable); check apns.channelEndpoints, and that this machine "
                    + "may connect to that host and port")
        }
        guard !(200..<300).contains(answer.status) else { return answer }
        struct Body: Decodable { var reason: String }
        let body = try? JSONDecoder().decode(Body.self, from: Data(answer.body))
        throw ChannelRefusal(
            status: answer.status, reason: body?.reason ?? "", app: app, environment: environment)
    }
}

/// APNs has refused what was asked of channels.
struct ChannelRefusal: Error {
    var status: UInt16
    /// The reason that APNs gave; empty if it gave none.
    var reason: String
    var app: String
    var environment: PushEnvironment

    var text: String {
        let answer = reason.isEmpty ? "\(status)" : "\(status) \(reason.printable)"
        return "APNs answers \(answer): \(advice)"
    }

    private var advice: String {
        let known = APNSReason(reason)
        switch known {
        case .badChannelId, .channelNotRegistered:
            return "\(app) has no such channel in \(environment.name)"
        case .cannotCreateChannelConfig:
            return "\(app) has as many channels in \(environment.name) as APNs allows; delete some"
        case .featureNotEnabled:
            return "switch on the broadcast capability of push notifications for this app's "
                + "identifier in the developer account"
        case .topicDisallowed:
            return "--app must be a bundle identifier of the team's, without a suffix"
        case .topicMismatch: return "the credential does not sign for \(app)"
        case .tooManyRequests: return "too many requests; try again later"
        default: break
        }
        if status == 403 { return APNSAdvice.credential(known) }
        return status >= 500
            ? "a fault at APNs; try again later"
            : "APNs does not take this request; if apns.channelEndpoints does not name Apple's own "
                + "hosts, check what it names"
    }
}
