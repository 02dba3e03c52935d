// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO

extension DemoRun {
    package enum Result: Sendable {
        case proven
        /// Something was lost, a phone is registered otherwise than it shows, or a worker ended by
        /// itself.
        case failed
        /// There is no result: the demo was ended before the first event, or while it waited for
        /// pushes.
        case none
    }

    private static let checkMax = Duration.seconds(120)

    func judge() throws -> Result {
        figures.phase = .judging
        let ending = try check()
        let phones = PhonesReport(output: fleet.phones?.output ?? "")
        // The program had not come so far when a demo that was ended early asked it to end.
        let hadPhones = endRequests == 0 || fleet.phones?.ending != .killed(signal: SIGTERM)
        let (json, lines) = fleet.result()
        figures.phase = .ended
        figures.result = lines.last
        display.show(figures, messages: messages)
        display.close(messages)
        display.tell(
            phones?.text
                ?? (hadPhones
                    ? "the phones said nothing: \(fleet.tail("phones-errors.log"))"
                    : "the phones had not begun"))
        for line in lines { display.tell(line) }
        if options.isJSON { StandardOutput.write(json) }
        for ending in ownEndings { display.warn(ending) }
        switch ending {
        case .exited(0):
            let areGood = phones?.isGood ?? !hadPhones
            return ownEndings.isEmpty && areGood ? .proven : .failed
        case .exited(1): return .failed
        default: throw FleetError(description: "the checker has \(ending.words)")
        }
    }

    private func check() throws -> ChildProcess.Ending {
        let checker = try fleet.startChecker(kills: fleet.path("kills.ndjson"))
        let patience = Patience(Self.checkMax)
        while true {
            if let ending = checker.ending { return ending }
            guard !patience.isOver else {
                throw FleetError(description: "the checker did not end in time")
            }
            try turn()
        }
    }

    /// Writes the evidence of the result into the folder while Kafka is still running, and prints
    /// where it is.
    func keepEvidence() {
        display.tell("the logs are in \(fleet.plan.directory)")
        // Without an event there is nothing to check.
        guard figures.events > 0 else { return }
        do {
            let evidence = KeptEvidence(of: fleet)
            display.tell("to judge them again: \(try evidence.write())")
        } catch {
            display.warn("what only Kafka had is not among them: \(error)")
        }
    }
}
