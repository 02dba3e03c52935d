// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import LinuxIO

@main
struct Lamplighter: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lamplighter",
        abstract: "Turns state changes into Apple pushes.",
        discussion: """
            Reads state-change events from Kafka, finds the push tokens that show the changed \
            subject, and sends each a request to APNs.

            Exit codes: 0; 64 usage; 69 Kafka or APNs unreachable at start; 70 internal; 75 a client \
            failed for good, start again; 78 configuration.
            """,
        subcommands: [
            RunCommand.self, CheckCommand.self, TopicsCommand.self, EmitCommand.self,
            RegisterCommand.self, PushCommand.self, SimulateCommand.self,
        ])

    static func main() async {
        // A peer that closes its socket must be an error of that write, not the end of the process.
        BrokenPipe.ignoreSignal()
        // Before the first suspension, while this is the only thread. The simulators wait for these
        // signals themselves; a worker's service group has handlers of its own.
        if CommandLine.arguments.dropFirst().first == "simulate" { StopSignals.block() }
        await Self.main(nil)
    }
}
