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
            --wait is for the start of a cluster: while Kafka does not answer, a topic is missing or a \
            right is, the check begins again, and the command ends as soon as it passes. What no \
            waiting mends, such as a mistake in the configuration or a topic with wrong settings, \
            ends it at once.

            To ask APNs, one push is sent in each environment of each credential to a token of \
            zeros, which nobody has: "BadDeviceToken" means that the credential is accepted. \
            --skip-apns leaves that out.
            """)

    @OptionGroup var options: ConfigurationOption

    @Flag(help: "Do not connect to APNs.")
    var skipAPNS = false

    @Option(help: "How long to wait for Kafka, its topics and the rights: 60s, or seconds.")
    var wait: DurationArgument?

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
        await waitForKafka(configuration)
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
        let finding = try lookAtKafka(configuration)
        for warning in finding.warnings { print("warning \(warning)") }
        guard finding.problems.isEmpty else {
            throw Failure(.configuration, finding.problems.joined(separator: "\nwrong   "))
        }
        print("ok      Kafka and its topics")
    }

    private func lookAtKafka(_ configuration: Configuration) throws -> KafkaFinding {
        let admin = try TopicAdmin(configuration)
        var finding = KafkaFinding()
        var missing: Set<String> = []
        for topic in RequiredTopic.all(configuration.kafka) {
            let found = try topic.look(admin)
            finding.problems += found.problems
            finding.warnings += found.warnings
            if !found.exists {
                missing.insert(topic.name)
            } else if !found.problems.isEmpty {
                finding.isForGood = true
            }
        }
        // The embedded Kafka has no access control.
        if admin.isEmbedded == false {
            let rights = try NeededRights(configuration).look(configuration, without: missing)
            finding.problems += rights.problems
            finding.warnings += rights.warnings
        }
        return finding
    }

    /// Returns when the check of Kafka would pass, when no waiting helps, or when the time of `--wait`
    /// is over.
    private func waitForKafka(_ configuration: Configuration) async {
        guard let wait else { return }
        let deadline = ContinuousClock.now + wait.duration
        var told = ""
        while ContinuousClock.now < deadline {
            let reason: String
            do {
                let finding = try lookAtKafka(configuration)
                guard let first = finding.problems.first, !finding.isForGood else { return }
                reason = first
            } catch {
                let failure = Failure(error)
                guard failure.status != .configuration || Self.isMissingRight(error) else { return }
                reason = failure.message
            }
            // One line for each reason, not for each look.
            if reason != told { print("waiting \(reason)") }
            told = reason
            try? await Task.sleep(for: Self.lookInterval)
        }
    }

    /// A right may be given together with the topics, after this program has started.
    private static func isMissingRight(_ error: any Error) -> Bool {
        guard case KafkaError.forbidden = error else { return false }
        return true
    }

    private static let lookInterval = Duration.seconds(1)

    /// What a look at Kafka has found.
    private struct KafkaFinding {
        var problems: [String] = []
        var warnings: [String] = []
        /// Whether a topic has settings that no waiting mends.
        var isForGood = false
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
