// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Logging
import OpenSSL
import Testing

@testable import Worker

/// A logger, a trap or a debugger may print whatever it is given.
@Suite struct `Secrets` {
    private static let yaml = """
        kafka:
          properties:
            security.protocol: SASL_SSL
            sasl.mechanisms: OAUTHBEARER
            sasl.oauthbearer.method: oidc
            sasl.oauthbearer.token.endpoint.url: https://id.example.com/token
            sasl.oauthbearer.client.id: lamplighter
            sasl.oauthbearer.client.secret: hunter-oidc
            sasl.username: lamplighter
            sasl.password: hunter-sasl
            ssl.key.password: hunter-key
        apns: {proxy: "http://user:hunter-proxy@proxy:3128"}
        """

    private static func everything(of value: Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        return "\(value)\n\(String(reflecting: value))\n\(dumped)"
    }

    @Test func `nothing that holds one shows it, however it is printed`() throws {
        let pem = try ES256Key.generate().privatePEM
        let configuration = try configuration(
            Self.yaml, ["LAMPLIGHTER_APNS_CREDENTIALS_HOME_KEY": pem])
        let plan = WorkerPlan(configuration)
        let keys = try SigningKeys(configuration.apns)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let worker = try LamplighterWorker(
            configuration: configuration, log: FixedLog(), logger: logger)
        let holders: [Any] = [
            configuration, plan, plan.kafka, keys, plan.delivery(configuration.apns, keys: keys),
            worker,
        ]
        for holder in holders {
            let shown = Self.everything(of: holder)
            #expect(!shown.contains("hunter"), "\(type(of: holder))")
            #expect(!shown.contains("BEGIN"), "\(type(of: holder))")
            for line in pem.split(separator: "\n").dropFirst().dropLast() {
                #expect(!shown.contains(line), "\(type(of: holder))")
            }
        }
        #expect("\(worker)" == "worker")
    }
}

/// A log whose level no test changes.
struct FixedLog: AdjustableLog {
    let level = Logger.Level.info

    func change(level: Logger.Level) {}
}
