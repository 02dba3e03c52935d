// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Delivery
import Entrypoint
import Glibc
import KafkaLog
import Logging
import PushModel
import SchemaRegistry
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

    @Option(
        help: "How long to wait for Kafka, its topics and the rights: 60s, or seconds.",
        transform: { try DurationArgument($0, atLeast: .zero) })
    var wait: DurationArgument?

    @Option(
        help: ArgumentHelp(
            """
            Read the last so many records of each partition of each events topic, and say what they \
            would do.
            """, valueName: "records"))
    var sample: Int?

    @Flag(name: .customLong("schema"), help: "Print the JSON schema of the configuration and stop.")
    var printsSchema = false

    func validate() throws {
        guard sample.map({ (1...100_000).contains($0) }) ?? true else {
            throw ValidationError("--sample is from 1 to 100000 records of each partition")
        }
    }

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
        let unusable = reportReadyTokens(keys, &failures)
        report(&failures) { try tryEvents(configuration, plan) }
        let finding = await lastLook(configuration)
        report(&failures) { try report(finding.get()) }
        if let registry = configuration.kafka.schemaRegistry.settings {
            report(&failures) {
                if let problem = SchemaSource.trial(registry) {
                    throw Failure(.unavailable, "the schema registry: \(problem)")
                }
                print("ok      schema registry")
            }
        }
        if let sample { report(&failures) { try readSample(of: sample, configuration, plan) } }
        if !skipAPNS { checkAPNS(configuration, plan, keys, without: unusable, &failures) }
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

    /// Looks at the provider tokens that other services make.
    ///
    /// - Returns: the credentials whose token APNs would refuse.
    private func reportReadyTokens(_ keys: SigningKeys, _ failures: inout [Failure]) -> Set<String>
    {
        var unusable: Set<String> = []
        for (credential, problem) in keys.readyTokenProblems(at: RecordWriter.now()) {
            let text =
                "the provider token of credential '\(credential)' \(problem.wrong); \(problem.remedy)"
            guard problem.isOver else {
                print("warning \(text)")
                continue
            }
            unusable.insert(credential)
            report(&failures) { throw Failure(.unavailable, text) }
        }
        return unusable
    }

    /// Reads records as a worker would, and sends nothing.
    private func readSample(
        of count: Int, _ configuration: Configuration, _ plan: WorkerPlan
    ) throws {
        var sample = EventSample(plan, registry: configuration.kafka.schemaRegistry.settings)
        let now = RecordWriter.now().wall
        for (number, topic) in plan.eventTopics.enumerated() {
            for tail in [count, nil] {
                sample.begin(number)
                do {
                    try TopicSweep(configuration, topic: topic, tail: tail).run { record in
                        sample.record(
                            at: .init(
                                topic: number, partition: record.partition, offset: record.offset),
                            key: record.key, value: record.value,
                            timestamp: WallTime(milliseconds: record.timestampMilliseconds),
                            now: now, header: { record.header(named: $0) })
                        return true
                    }
                    break
                } catch is ShorterLog {
                    continue
                }
            }
        }
        try TopicSweep(configuration, topic: configuration.kafka.topics.registrations).run {
            sample.registration(
                key: $0.key, value: $0.value,
                timestamp: WallTime(milliseconds: $0.timestampMilliseconds))
            return true
        }
        for line in sample.lines { print("sample  \(TerminalText.visible(line))") }
    }

    /// Carries out `kafka.eventTests`.
    private func tryEvents(_ configuration: Configuration, _ plan: WorkerPlan) throws {
        var problems: [String] = []
        var count = 0
        for (topic, tests) in configuration.kafka.eventTests.sorted(by: { $0.key < $1.key }) {
            for test in tests {
                count += 1
                problems += test.failures(topic: topic, plan: plan, now: RecordWriter.now().wall)
                    .map { "\(topic), \(test.name): \($0)" }
            }
        }
        guard problems.isEmpty else {
            throw Failure(.configuration, problems.joined(separator: "\nwrong   "))
        }
        if count > 0 { print("ok      \(count) event tests") }
    }

    private func report(_ finding: KafkaFinding) throws {
        print("ok      \(finding.protocols)")
        for warning in finding.warnings { print("warning \(warning)") }
        guard finding.problems.isEmpty else {
            throw Failure(.configuration, finding.problems.joined(separator: "\nwrong   "))
        }
        print("ok      Kafka and its topics")
    }

    /// Looks at Kafka until the check would pass, no waiting helps, or the time of `--wait` is over.
    ///
    /// - Returns: what the last look has found.
    private func lastLook(
        _ configuration: Configuration
    ) async -> Result<KafkaFinding, any Error> {
        var waiting = KafkaWait(limit: wait?.duration ?? .zero, now: .now)
        // Written to a container's log, standard output would appear only at the end otherwise.
        fflush(nil)
        while true {
            let timeout = waiting.lookTimeout(at: .now)
            let result = Result { try lookAtKafka(configuration, timeout: timeout) }
            switch waiting.looked(Self.meaning(of: result), at: .now) {
            case .end: return result
            case .again(let pause, let line):
                if let line { print("waiting \(line)") }
                fflush(nil)
                try? await Task.sleep(for: pause)
            }
        }
    }

    private func lookAtKafka(
        _ configuration: Configuration, timeout: Duration
    ) throws -> KafkaFinding {
        let logger = logger(configuration.log)
        let admin = try TopicAdmin(
            settings: configuration.kafka.clientSettings, timeout: timeout, logger: logger)
        var finding = KafkaFinding()
        var missing: Set<String> = []
        for topic in RequiredTopic.all(of: configuration) {
            let found = try topic.look(admin)
            finding.problems += found.problems
            finding.warnings += found.warnings
            if !found.exists {
                missing.insert(topic.name)
            } else if !found.problems.isEmpty {
                finding.isForGood = true
            }
        }
        let settings = configuration.kafka.clientSettings
        let hasConsumers = try settings.kafkaHasConsumerProtocol(timeout: timeout)
        finding.protocols = GroupProtocol.summary(isInKafka: hasConsumers)
        if let problem = settings.protocolProblem(isInKafka: hasConsumers) {
            finding.problems.append("\(problem)")
            finding.isForGood = true
        }
        // The embedded Kafka has no access control.
        if admin.isEmbedded == false {
            let rights = try NeededRights(configuration).look(
                configuration, without: missing, logger: logger)
            finding.problems += rights.problems
            finding.warnings += rights.warnings
        }
        if finding.problems.isEmpty { finding.warnings += misplaced(configuration) }
        return finding
    }

    /// How many of the newest records of each partition are looked at for their place.
    private static let placesLooked = 100

    /// Compacted topics that somebody has written to with another partitioner lately.
    private func misplaced(_ configuration: Configuration) -> [String] {
        let topics = configuration.kafka.topics
        return [topics.registrations, topics.suppressions].compactMap { topic -> String? in
            do {
                let found = try TopicSweep.misplaced(
                    among: Self.placesLooked, of: topic, configuration)
                guard found.count > 0 else { return nil }
                return "of the last \(Self.placesLooked) records of each partition, "
                    + "\(found.text); \(MisplacedRecords.remedy)"
            } catch {
                return "cannot look at the last records of \(topic): \(Failure(error).message)"
            }
        }
    }

    /// Makes a logger for what the report has not: the details at `debug`, as text for the person who
    /// reads both. What is wrong is in the report, and for each attempt of `--wait` in its line.
    private func logger(_ log: Configuration.Log) -> Logger {
        var log = log
        log.format = .text
        var logger = ConfigurationOption.logger(log)
        if logger.logLevel > .debug { logger.logLevel = .critical }
        return logger
    }

    private static func meaning(of result: Result<KafkaFinding, any Error>) -> KafkaWait.Look {
        switch result {
        case .success(let finding):
            guard let first = finding.problems.first else { return .passed }
            return finding.isForGood ? .wrong : .pending(first)
        case .failure(let error):
            let failure = Failure(error)
            // A right may be given together with the topics, after this program has started.
            if case KafkaError.forbidden = error { return .pending(failure.message) }
            return failure.status == .configuration ? .wrong : .pending(failure.message)
        }
    }

    /// What a look at Kafka has found.
    private struct KafkaFinding {
        /// What the loaded librdkafka and Kafka bear of the ways to share partitions.
        var protocols = ""
        var problems: [String] = []
        var warnings: [String] = []
        /// Whether a topic has settings that no waiting mends.
        var isForGood = false
    }

    private func checkAPNS(
        _ configuration: Configuration, _ plan: WorkerPlan, _ keys: SigningKeys,
        without unusable: Set<String>, _ failures: inout [Failure]
    ) {
        // The hosts for broadcasts are left out: who has no channels need not be able to reach them.
        for (number, pool) in plan.routing.pools.enumerated()
        where !pool.isForBroadcasts && !unusable.contains(pool.credential) {
            let route = plan.routing.routes.firstIndex {
                $0.pool.rawValue == number && $0.tokenClass == .control
            }!
            let push = SinglePush(
                plan, route: RouteID(rawValue: UInt16(route)), type: .controls,
                token: Array(repeating: 0, count: 32), now: RecordWriter.now().wall)
            report(&failures) {
                let answer = try push.send(
                    configuration: configuration, plan: plan, keys: keys, timeout: .seconds(15),
                    logger: logger(configuration.log))
                guard let answer, answer.outcome.kind == .answered else {
                    throw push.unanswered(answer, configuration, plan, keys)
                }
                try judge(answer, of: pool, push.place(configuration, plan))
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
                "\(place) refuses credential '\(pool.credential)': \(Self.reason(answer)); "
                    + APNSAdvice.text(answer.outcome))
        case 400:
            throw Failure(
                .configuration,
                "\(place) refuses a push for credential '\(pool.credential)': \(Self.reason(answer)); "
                    + APNSAdvice.text(answer.outcome))
        case 429:
            throw Failure(
                .unavailable,
                "\(place) answers \(Self.reason(answer)) for credential '\(pool.credential)': "
                    + APNSAdvice.text(answer.outcome))
        default:
            throw Failure(
                .unavailable,
                "\(place) answers \(Self.reason(answer)): if that is not APNs, "
                    + "check apns.endpoints; if it is, try again")
        }
        print("ok      \(place), credential '\(pool.credential)'")
    }

    private static func reason(_ answer: SinglePush.Answer) -> String {
        let reason = answer.reason.isEmpty ? "without a reason" : answer.reason.printable
        return "\(answer.outcome.status) \(reason)"
    }
}
