// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint

/// The program that runs in a cluster, with the commands for its operators.
@main
struct Lamplighter: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lamplighter",
        abstract: "Turns state changes into Apple pushes.",
        discussion: """
            Reads state-change events from Kafka, finds the push tokens that show the changed \
            subject, and sends each a request to APNs. To try it out without Kafka and Apple there \
            is lamplighter-lab.

            Exit codes: 0; 1 the answer is no, or some workers have not answered; 64 usage; 69 Kafka or APNs unreachable at start; 70 internal; 75 a client \
            failed for good, start again; 78 configuration; 79 a stop took too long.
            """,
        version: Version.text(of: "lamplighter"),
        subcommands: [
            RunCommand.self, StatusCommand.self, ExplainCommand.self, CheckCommand.self,
            TopicsCommand.self, EmitCommand.self, RegisterCommand.self, PushCommand.self,
            ReplayCommand.self, DeadLettersCommand.self, DeferredCommand.self,
            SuppressionsCommand.self, RegistrationsCommand.self, CompareCommand.self,
            IndexCommand.self,
            PauseCommand.self, DropCommand.self, LimitCommand.self, ResumeCommand.self,
            RolloutCommand.self,
            RestrictionsCommand.self, ChannelsCommand.self, RegistrarCommand.self,
            RegistrarKeyCommand.self,
        ])

    static func main() {
        LabCommands.refuse(CommandLine.arguments)
        Program.main(Self.self)
    }
}
