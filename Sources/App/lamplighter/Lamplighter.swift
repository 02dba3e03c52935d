// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser

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
        version: Version.text,
        subcommands: [
            RunCommand.self, CheckCommand.self, TopicsCommand.self, EmitCommand.self,
            RegisterCommand.self, PushCommand.self, DeadLettersCommand.self,
            VerdictsCommand.self, RegistrationsCommand.self, SimulateCommand.self, DemoCommand.self,
            DemoPictureCommand.self, ChaosCommand.self,
        ])
}
