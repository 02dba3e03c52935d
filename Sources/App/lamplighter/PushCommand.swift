// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Delivery
import Entrypoint
import Foundation
import Logging
import PushModel
import RecordFormats
import Worker

struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Sends one push to the token on standard input, and prints the answer.",
        discussion: """
            Its headers are those that a worker of this configuration would send for an event with \
            the same options. Exit codes: 0 accepted; 1 refused by APNs; 69 no answer. With --curl it \
            sends nothing: it prints a command that does.
            """)

    @OptionGroup var options: ConfigurationOption

    @Option(help: "production or development.")
    var environment: String

    @Option(help: "The app's bundle identifier.")
    var app: String

    @Option(
        help: """
            controls, widgets, background, alert, … (default: controls; with a payload alert or \
            background, as the payload is)
            """)
    var type: String?

    @Option(help: "A JSON body; by default the push type's own.")
    var payload: String?

    @Option(help: "apns-priority: 10, 5 or 1; by default as planning.wire has it.")
    var priority: UInt8?

    @Option(name: .customLong("collapse-id"), help: "At most 64 bytes; for a push with a payload.")
    var collapseID: String?

    @Option(
        help: "For how long the push is worth sending, such as 30s or 2h.",
        transform: { try DurationArgument($0, atLeast: .zero) })
    var ttl: DurationArgument?

    @Flag(help: "Print the answer and the headers as one line of JSON.")
    var json = false

    @Flag(help: "Print the push as a command of curl's, and send nothing.")
    var curl = false

    @Flag(
        help:
            "With --curl: also print a provider token, with which anybody can send pushes for an hour."
    )
    var showToken = false

    func validate() throws {
        if showToken, !curl { throw ValidationError("--show-token goes with --curl") }
        if json, curl { throw ValidationError("--json prints an answer, and --curl asks for none") }
    }

    func run() async throws {
        let configuration = try options.load()
        let plan = WorkerPlan(configuration)
        let push = try makePush(plan)
        if curl {
            try printCurl(push, plan, configuration.apns)
            return
        }
        // The token comes on standard input, so that it is in no process list and no shell history.
        let keys = try SigningKeys(configuration.apns)
        let answer = try push.send(
            configuration: configuration, plan: plan, keys: keys, timeout: .seconds(20),
            logger: ConfigurationOption.logger(configuration.log))
        guard let answer, answer.outcome.kind == .answered else {
            throw push.unanswered(answer, configuration, plan, keys)
        }
        let report = PushReport(push, topic: plan.routing[push.route].apnsTopic, answer)
        print(json ? try report.json() : report.text)
        if answer.outcome.status != 200 { throw ExitCode.failure }
    }

    private func printCurl(
        _ push: SinglePush, _ plan: WorkerPlan, _ apns: Configuration.APNS
    ) throws {
        let environment = try Arguments.environment(environment)
        if showToken {
            print(try CurlCommand.assignment(push, plan, environment: environment, apns))
        } else {
            FileHandle.standardError.write(
                Data("note: JWT must be a provider token; --show-token prints one\n".utf8))
        }
        let topic = plan.routing[push.route].apnsTopic
        print(CurlCommand(push, topic: topic, environment: environment, apns).text)
    }

    private func makePush(_ plan: WorkerPlan) throws -> SinglePush {
        let environment = try Arguments.environment(environment)
        let (type, wishes) = try content(plan)
        guard let app = plan.routing.app(named: app),
            let route = plan.routing.route(
                environment: environment, app: app, tokenClass: type.tokenClass)
        else {
            throw Failure(
                .configuration,
                "no credential serves \(self.app) in \(environment.name): see "
                    + "apns.credentials")
        }
        guard let line = readLine() else { throw ValidationError("no token on standard input") }
        let token = try Arguments.token(line.trimmingCharacters(in: .whitespaces))
        guard !token.isEmpty else { throw ValidationError("no token on standard input") }
        return SinglePush(
            plan, route: route, type: type, token: token, now: RecordWriter.now().wall,
            wishes: wishes
        )
    }

    /// The push type, and the values that an event with these options would set.
    private func content(_ plan: WorkerPlan) throws -> (PushType, SinglePush.Wishes) {
        let named = try type.map(Arguments.pushType)
        var draft = EventDraft()
        draft.app = app
        draft.priority = priority
        draft.collapseID = collapseID
        draft.payload = payload.map { Array($0.utf8) }
        draft.pushType = named
        let trial = RecordTrial(plan, now: RecordWriter.now().wall)
        let read = try Arguments.trying { () throws(UselessRecord) in
            try trial.payload(of: draft)
        }
        let type = named ?? read?.type ?? .controls
        var wishes = SinglePush.Wishes()
        wishes.payload = read
        wishes.priority = priority
        wishes.collapseID = collapseID
        wishes.ttl = ttl?.duration
        if wishes.payload == nil, collapseID != nil {
            throw ValidationError("--collapse-id goes with --payload")
        }
        return (type, wishes)
    }

}

/// The report of one push. It never contains the token.
private struct PushReport: Encodable {
    private let status: UInt16
    /// The reason that APNs gave; nil if the push was accepted.
    private let reason: String?
    private let meaning: String
    private let apnsID: String
    private let headers: [String: String]

    init(_ push: SinglePush, topic: String, _ answer: SinglePush.Answer) {
        status = answer.outcome.status
        reason = status == 200 || answer.reason.isEmpty ? nil : answer.reason
        meaning = APNSAdvice.text(answer.outcome)
        apnsID = push.apnsID.text
        headers = Dictionary(
            uniqueKeysWithValues: push.headers(topic: topic).map { ($0.name, $0.value) })
    }

    var text: String {
        reason.map { "\(status) \($0.printable), apns-id \(apnsID): \(meaning)" }
            ?? "\(status) \(meaning), apns-id \(apnsID)"
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}
