// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSDelivery
import Configuration
import Curl
import Entrypoint
import PushModel
import RecordFormats
import Worker

/// A push as a command of curl's, for `lamplighter push --curl`. It has the device token, which is of no
/// use without a provider token, and takes that from the shell's variable `JWT`.
struct CurlCommand {
    let text: String

    init(
        _ push: SinglePush, topic: String, environment: PushEnvironment, _ apns: Configuration.APNS
    ) {
        let endpoint = apns.endpoints[environment]
        var words = ["curl --http2 --include"]
        if let file = apns.caFile(for: endpoint) {
            words.append("--cacert \(Self.quoted(file))")
        }
        if let proxy = apns.proxy.flatMap({ HTTPProxy($0.text) }) {
            words.append("--proxy \(Self.quoted("http://\(proxy.address)"))")
        }
        let name = endpoint.serverName ?? endpoint.host
        if name != endpoint.host {
            words.append(
                "--connect-to "
                    + Self.quoted("\(name):\(endpoint.port):\(endpoint.host):\(endpoint.port)"))
        }
        words.append(#"--header "authorization: bearer $JWT""#)
        for (name, value) in push.headers(topic: topic) + [("apns-id", push.apnsID.text)] {
            words.append("--header \(Self.quoted("\(name): \(value)"))")
        }
        words.append("--data \(Self.quoted(String(decoding: push.body, as: UTF8.self)))")
        let token = Hexadecimal.encode(push.token)
        words.append(Self.quoted("https://\(name):\(endpoint.port)/3/device/\(token)"))
        text = words.joined(separator: " \\\n  ")
    }

    /// A provider token of the push's credential, as an assignment to the shell's variable.
    static func assignment(
        _ push: SinglePush, _ plan: WorkerPlan, environment: PushEnvironment,
        _ apns: Configuration.APNS
    ) throws -> String {
        let credential = plan.routing[plan.routing[push.route].pool].credential
        let token = try SigningKeys(apns)[credential, environment].current(now: RecordWriter.now())
        let bearer = String(decoding: token.bearer, as: UTF8.self)
        return "JWT=\(quoted(String(bearer.dropFirst("bearer ".count))))"
    }

    /// A word for a POSIX shell, which reads nothing in it.
    private static func quoted(_ text: String) -> String {
        "'"
            + text.split(separator: "'", omittingEmptySubsequences: false).joined(
                separator: #"'\''"#) + "'"
    }
}

extension SinglePush {
    /// The headers that say what APNs shall do with the push, in the order in which Apple lists them.
    func headers(topic: String) -> [(name: String, value: String)] {
        var headers = [("apns-push-type", type.name)]
        if expiration >= 0 { headers.append(("apns-expiration", "\(expiration)")) }
        if priority > 0 { headers.append(("apns-priority", "\(priority)")) }
        headers.append(("apns-topic", topic))
        if !collapseID.isEmpty {
            headers.append(("apns-collapse-id", String(decoding: collapseID, as: UTF8.self)))
        }
        return headers
    }
}
