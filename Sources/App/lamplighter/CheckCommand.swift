// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSDelivery
import ArgumentParser
import Delivery
import Entrypoint
import KafkaLog
import Logging
import PushModel
import Worker

struct CheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Says what is wrong before a worker does: configuration, keys, Kafka, APNs.",
        discussion: """
            To ask APNs, one push is sent in each environment of each credential to a token of \
            zeros, which nobody has: "BadDeviceToken" means that the credential is accepted. \
            --skip-apns leaves that out.
            """)

    @OptionGroup var options: ConfigurationOption

    @Flag(help: "Do not connect to APNs.")
    var skipAPNS = false

    @Flag(name: .customLong("schema"), help: "Print the JSON schema of the configuration and stop.")
    var printsSchema = false

    func run() async throws {
        if printsSchema {
            print(Configuration.jsonSchema)
            return
        }
        let configuration = try options.load()
        for notice in configuration.notices + configuration.appWarnings {
            print("warning \(notice)")
        }
        print("ok      configuration")
        let keys = try SigningKeys(configuration.apns)
        let plan = WorkerPlan(configuration)
        try plan.kafka.validate()
        print("ok      signing keys")
        var failures: [Failure] = []
        report(&failures) { try checkKafka(configuration) }
        if !skipAPNS { checkAPNS(configuration, plan, keys, &failures) }
        if let first = failures.first { throw ExitCode(first.status.rawValue) }
    }

    private func report(_ failures: inout [Failure], _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            let failure = Failure(error)
            print("wrong   \(failure.message)")
            failures.append(failure)
        }
    }

    private func checkKafka(_ configuration: Configuration) throws {
        let admin = try TopicAdmin(configuration)
        var problems: [String] = []
        var warnings: [String] = []
        var missing: Set<String> = []
        for topic in RequiredTopic.all(configuration.kafka) {
            let finding = try topic.look(admin)
            problems += finding.problems
            warnings += finding.warnings
            if !finding.exists { missing.insert(topic.name) }
        }
        // The embedded Kafka has no access control.
        if admin.isEmbedded == false {
            let rights = try NeededRights(configuration).look(configuration, without: missing)
            problems += rights.problems
            warnings += rights.warnings
        }
        for warning in warnings { print("warning \(warning)") }
        guard problems.isEmpty else {
            throw Failure(.configuration, problems.joined(separator: "\nwrong   "))
        }
        print("ok      Kafka and its topics")
    }

    private func checkAPNS(
        _ configuration: Configuration, _ plan: WorkerPlan, _ keys: SigningKeys,
        _ failures: inout [Failure]
    ) {
        for (number, pool) in plan.routing.pools.enumerated() {
            let route = plan.routing.routes.firstIndex {
                $0.pool.rawValue == number && $0.tokenClass == .control
            }!
            let push = SinglePush(
                plan, route: RouteID(rawValue: UInt16(route)), type: .controls,
                token: Array(repeating: 0, count: 32), now: RecordWriter.now().wall)
            report(&failures) {
                let answer = try push.send(
                    configuration: configuration, plan: plan, keys: keys, timeout: .seconds(15),
                    logger: ConfigurationOption.logger(configuration.log))
                let endpoint = configuration.apns.endpoints[pool.environment]
                let place = "APNs \(pool.environment.name) (\(endpoint.host):\(endpoint.port))"
                guard let answer, answer.outcome.kind == .answered else {
                    let finding = push.probe(configuration: configuration, plan: plan, keys: keys)
                    throw Failure(
                        finding.isConfiguration ? .configuration : .unavailable,
                        "\(place) \(finding.wrong): \(finding.remedy)")
                }
                try judge(answer, of: pool, place)
            }
        }
    }

    /// Reasons that are only about the device token.
    private static let tokenReasons = ["BadDeviceToken", "DeviceTokenNotForTopic"]

    private func judge(_ answer: SinglePush.Answer, of pool: Pool, _ place: String) throws {
        switch answer.outcome.status {
        case 200, 410,
            400 where Self.tokenReasons.contains(answer.reason):
            break
        case 403:
            throw Failure(
                .configuration,
                "\(place) refuses credential '\(pool.credential)': \(answer.reason); "
                    + APNSAdvice.text(answer.outcome))
        case 400:
            throw Failure(
                .configuration,
                "\(place) refuses a push for credential '\(pool.credential)': \(answer.reason); "
                    + APNSAdvice.text(answer.outcome))
        case 429:
            throw Failure(
                .unavailable,
                "\(place) answers 429 \(answer.reason) for credential '\(pool.credential)': "
                    + APNSAdvice.text(answer.outcome))
        default:
            let status = [String(answer.outcome.status), answer.reason].filter { !$0.isEmpty }
            throw Failure(
                .unavailable,
                "\(place) answers \(status.joined(separator: " ")): if that is not APNs, "
                    + "check apns.endpoints; if it is, try again")
        }
        print("ok      \(place), credential '\(pool.credential)'")
    }
}
