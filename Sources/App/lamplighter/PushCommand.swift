// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Delivery
import Foundation
import Logging
import PushModel
import Worker

struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Sends one push to the token on standard input, and prints the answer.")

    @OptionGroup var options: ConfigurationOption

    @Option(help: "production or development.")
    var environment: String

    @Option(help: "The app's bundle identifier.")
    var app: String

    @Option(help: "controls, widgets, background, alert, …")
    var type = "controls"

    @Option(help: "A JSON body; by default the push type's own.")
    var payload: String?

    func run() async throws {
        try await Failure.reporting {
            let configuration = try options.load()
            let plan = WorkerPlan(configuration)
            let push = try makePush(plan)
            // On standard input, so that no token stands in a process list or a shell's history.
            let answer = try push.send(
                configuration: configuration, plan: plan,
                keys: try SigningKeys(configuration.apns), timeout: .seconds(20),
                logger: ConfigurationOption.logger(configuration.log))
            guard let answer, answer.outcome.kind == .answered else {
                throw Failure(.unavailable, "APNs did not answer: see lamplighter check")
            }
            print("\(answer.outcome.status) \(answer.reason) apns-id \(push.apnsID.text)")
            if answer.outcome.status != 200 { throw ExitCode.failure }
        }
    }

    private func makePush(_ plan: WorkerPlan) throws -> SinglePush {
        guard let type = PushType(name: type) else {
            throw ValidationError(
                "'\(type)' is not a push type: "
                    + PushType.all.map(\.name).joined(separator: ", "))
        }
        let environment = try Arguments.environment(environment)
        guard let app = plan.routing.app(named: app),
            let lane = plan.routing.lane(
                environment: environment, app: app, tokenClass: type.tokenClass)
        else {
            throw Failure(
                .configuration,
                "no credential serves \(self.app) in \(environment.name): see "
                    + "apns.credentials")
        }
        if type.row.emptyBody == nil, payload == nil {
            throw ValidationError("a push of type \(type.name) needs --payload")
        }
        guard let line = readLine() else { throw ValidationError("no token on standard input") }
        let token = try Arguments.token(line.trimmingCharacters(in: .whitespaces))
        var push = SinglePush(lane: lane, type: type, token: token)
        push.body = payload.map { Array($0.utf8) }
        return push
    }
}
