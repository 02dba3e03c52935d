// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
internal import Configuration
import Delivery
import Entrypoint
import Importing
import PushModel
import Worker

struct ImportTrialOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "First send a push to so many rows, picked at random, and stop if APNs refuses too many.",
            valueName: "rows"))
    var trial: Int?

    @Option(
        help: """
            background: to rows that are to be written, a push that wakes the app and shows nothing; \
            dead: to tokens that the sender knows to be dead, which reaches nobody (default: background)
            """)
    var trialWith = "background"

    @Option(help: "How many of a hundred may be refused in the trial.")
    var trialRefusedMax = 10

    func checkArguments(_ source: ImportOptions) throws {
        guard let trial else { return }
        guard (1...ImportTrial.rowsMax).contains(trial) else {
            throw ValidationError("--trial is a number of rows from 1 to \(ImportTrial.rowsMax)")
        }
        guard ["background", "dead"].contains(trialWith) else {
            throw ValidationError("--trial-with is background or dead")
        }
        guard (0...100).contains(trialRefusedMax) else {
            throw ValidationError("--trial-refused-max is a number from 0 to 100")
        }
        guard !source.dryRun else {
            throw ValidationError("--trial sends pushes, and --dry-run nothing: use one of the two")
        }
        guard !source.files.contains("-") else {
            throw ValidationError(
                "--trial reads the rows twice, which standard input does not allow: name files")
        }
    }
}

/// Sends pushes to some rows before all are written: rows of another environment or app are refused,
/// and a million such tokens would be a million refusals.
struct ImportTrial {
    /// Each opens a connection of its own, one after the other.
    static let rowsMax = 500

    private let count: Int
    private let usesDead: Bool
    private var sample: [ImportedRow] = []
    private var seen = 0
    private var random = SystemRandomNumberGenerator()

    init(_ count: Int, usesDead: Bool) {
        self.count = count
        self.usesDead = usesDead
    }

    /// Takes each row into the sample with the same probability.
    mutating func take(_ mapped: MappedRow) {
        guard case .row(let row) = mapped, row.standing == (usesDead ? .dead : .live),
            row.tokenClass == .device
        else { return }
        seen += 1
        if sample.count < count {
            sample.append(row)
        } else {
            let place = Int.random(in: 0..<seen, using: &random)
            if place < count { sample[place] = row }
        }
    }

    struct Result {
        var usesDead: Bool
        var rows = 0
        var accepted = 0
        /// 410: the phone has gone.
        var gone = 0
        /// By reason, those that say something of the rows.
        var refused: [String: Int] = [:]

        var line: String {
            let reasons = refused.sorted { $0.key < $1.key }.map { ", \($1) \($0)" }.joined()
            return
                "trial: \(rows.counted("push", plural: "pushes")): \(accepted) accepted, \(gone) gone\(reasons)"
        }

        func check(refusedMax: Int) throws {
            guard rows > 0 else {
                throw Failure(
                    .unreadableInput,
                    "the trial has found no row to send a push to: nothing was written")
            }
            // That a dead token is gone shows that key, app and environment are right; another refusal does not.
            let sum = refused.values.reduce(usesDead ? 0 : gone, +)
            guard sum * 100 <= rows * refusedMax else {
                throw Failure(
                    .unreadableInput,
                    "APNs refused \(sum) of \(rows) pushes of the trial, and \(refusedMax) of a hundred "
                        + "may be: look at --environment and --app, or at how old the rows are. Nothing "
                        + "was written")
            }
        }
    }

    func run(_ configuration: Configuration) throws -> Result {
        let plan = WorkerPlan(configuration)
        let keys = try SigningKeys(configuration.apns)
        let logger = ConfigurationOption.logger(configuration.log)
        var result = Result(usesDead: usesDead)
        for row in sample {
            guard let app = plan.routing.app(named: row.app),
                let route = plan.routing.route(
                    environment: row.environment, app: app, tokenClass: row.tokenClass)
            else {
                throw Failure(
                    .configuration,
                    "no credential serves \(row.app) in \(row.environment.name): see "
                        + "apns.credentials")
            }
            let push = SinglePush(
                plan, route: route, type: .background, token: row.token,
                now: RecordWriter.now().wall)
            let answer = try push.send(
                configuration: configuration, plan: plan, keys: keys, timeout: .seconds(20),
                logger: logger)
            guard let answer, answer.outcome.kind == .answered else {
                throw push.unanswered(answer, configuration, plan, keys)
            }
            result.rows += 1
            switch answer.outcome.status {
            case 200: result.accepted += 1
            case 410: result.gone += 1
            case 400: result.refused[answer.reason.printable, default: 0] += 1
            case let status:
                throw Failure(
                    .unavailable,
                    "the trial was answered \(status) \(answer.reason.printable), which says nothing of "
                        + "the rows: lamplighter check looks at the key. Nothing was written")
            }
        }
        return result
    }
}
